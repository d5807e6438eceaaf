import { type Brand, OWN_BRAND } from './brand.ts'
import { type Html, html, raw } from './html.ts'

export type Tone = 'ok' | 'bad' | 'warn'

const TONE_ICONS = { ok: 'tick', bad: 'cross', warn: 'warning' } as const satisfies Record<Tone, IconName>

/** Shows a state in one or two words. `ok` and `bad` have an icon as well, so that colour is never the only sign. */
export function renderBadge(text: string, tone?: Tone | 'accent'): Html {
  const sign = tone === 'ok' || tone === 'bad' ? renderIcon(TONE_ICONS[tone]) : undefined
  return html`<span class="badge${tone !== undefined && ` badge--${tone}`}">${sign}${text}</span>`
}

/** Shows the event in bold, then the advice. Screen readers announce a `bad` alert at once. */
export function renderAlert(event: string, advice: Html | string, tone?: Tone): Html {
  return html`<div class="alert${tone !== undefined && ` alert--${tone}`} alert--page"${
    tone === 'bad' && html` role="alert"`
  }>${renderIcon(tone === undefined ? 'note' : TONE_ICONS[tone])}<p><b>${event}</b> ${advice}</p></div>`
}

export interface Action {
  readonly href: string
  readonly text: string
  readonly newTab?: boolean
}

/** Renders links as buttons. The first one is the main button. */
export function renderActions(...actions: readonly Action[]): Html {
  return html`<div class="actions">${actions.map(
    ({ href, text, newTab }, at) =>
      html`<a class="btn${at > 0 && ' btn--quiet'}" href="${href}"${newTab === true && html` target="_blank"`}>${text}</a>`,
  )}</div>`
}

/** A button or a link for what cannot be undone: it ends or removes something. The only red one. */
export function renderDanger(
  text: Html | string,
  { href, size }: { readonly href?: string; readonly size?: 'small' } = {},
): Html {
  const kind = html`class="btn btn--danger${size && ` btn--${size}`}"`
  return href === undefined
    ? html`<button ${kind}>${text}</button>`
    : html`<a ${kind} href="${href}">${text}</a>`
}

/** Explains why a list is empty, and offers one action. */
export function renderEmptyState(options: {
  readonly title: string
  /** A probable way on, before the text. */
  readonly lead?: Html | undefined
  readonly text: string
  readonly action?: Action
  /** The id of the heading, for `aria-labelledby`. */
  readonly id?: string
}): Html {
  const { title, lead, text, action, id } = options
  return html`<div class="empty"><h2${id !== undefined && html` id="${id}"`}>${title}.</h2> ${lead && html`<p class="empty__lead">${lead}</p> `}<p>${text}</p> ${
    action && html`<a class="btn btn--quiet btn--small" href="${action.href}">${action.text}</a>`
  }</div>`
}

export interface Field {
  readonly name: string
  readonly label: string
  readonly type?: 'text' | 'password' | 'search'
  /** The lines of a longer text. */
  readonly rows?: number | undefined
  readonly value?: string | undefined
  readonly autocomplete?: string
  readonly required?: boolean | undefined
  readonly autofocus?: boolean
  readonly error?: string | undefined
  readonly hint?: Html | string | undefined
}

export function renderField(options: Field): Html {
  const { name, label, type = 'text', rows, value, autocomplete = 'off', error, hint } = options
  const described = [error !== undefined && `${name}-error`, hint !== undefined && `${name}-hint`].filter(
    Boolean,
  )
  const start = html`class="input" id="${name}" name="${name}"`
  const typing = html` autocomplete="${autocomplete}" autocapitalize="none" spellcheck="false"`
  const state = html`${options.required && html` required`}${options.autofocus && html` autofocus`}${
    error !== undefined && html` aria-invalid="true"`
  }${described.length > 0 && html` aria-describedby="${described.join(' ')}"`}`
  return html`<div class="field"><label class="field__label" for="${name}">${label}</label>${
    rows === undefined
      ? renderInput(
          options,
          html`<input ${start} type="${type}"${typing}${value !== undefined && html` value="${value}"`}${state}>`,
        )
      : html`<textarea ${start}${typing}${state} rows="${rows}">${value}</textarea>`
  }${error !== undefined && html`<p class="field__error" id="${name}-error">${error}</p>`}${
    hint !== undefined && html`<p class="field__hint" id="${name}-hint">${hint}</p>`
  }</div>`
}

/** A password has a button that shows it, by `password.js`, which every page has. */
function renderInput({ name, label, type }: Field, input: Html): Html {
  return type === 'password'
    ? html`<div class="secret">${input}<button class="btn btn--quiet btn--small" type="button" data-shows="${name}" hidden><span>Show</span><span class="sr"> ${label.toLowerCase()}</span></button></div>`
    : input
}

export type Choice = readonly [value: string, text: string]

/** A field with few values. `all` is the text of no value. */
export function renderSelect(
  { name, label, all }: { readonly name: string; readonly label: string; readonly all?: string },
  choices: readonly Choice[],
  chosen: string | undefined,
): Html {
  const options = all === undefined ? choices : [['', all] as const, ...choices]
  return html`<div class="field"><label class="field__label" for="${name}">${label}</label><select class="select" id="${name}" name="${name}">${renderOptions(options, chosen)}</select></div>`
}

export function renderOptions(choices: readonly Choice[], chosen: string | undefined): readonly Html[] {
  return choices.map(
    ([value, text]) => html`<option value="${value}"${value === chosen && html` selected`}>${text}</option>`,
  )
}

/** The heading of a page, a sentence below it, and buttons beside it. */
export function renderPageHead(title: Html | string, lead?: Html | string, beside?: Html | false): Html {
  return html`<div class="pagehead"><div><h1>${title}</h1>${
    lead !== undefined && html`<p class="pagehead__lead">${lead}</p>`
  }</div>${beside}</div>`
}

export function renderHidden(values: Readonly<Record<string, string | undefined>>): readonly Html[] {
  return Object.entries(values).flatMap(([name, value]) =>
    value === undefined ? [] : html`<input type="hidden" name="${name}" value="${value}">`,
  )
}

/** A checkbox or radio button with its text and an explanation. */
export function renderChoice(options: {
  readonly type: 'checkbox' | 'radio'
  readonly name: string
  readonly value: string
  readonly isChecked: boolean
  readonly text: string
  readonly meta?: Html | string | undefined
}): Html {
  const { type, name, value, isChecked, text, meta } = options
  return html`<label class="choice"><input type="${type}" name="${name}" value="${value}"${isChecked && html` checked`}><span class="choice__main">${text}</span>${
    meta !== undefined && html`<span class="choice__meta">${meta}</span>`
  }</label>
`
}

/** A search in a list. `hidden` keeps the other parameters of the page. */
export function renderSearchForm(options: {
  readonly action: string
  readonly label: string
  readonly value: string | undefined
  readonly maxCharacters: number
  readonly name?: string
  /** Tells apart the searches of a page. */
  readonly subject?: string
  readonly hidden?: Readonly<Record<string, string | undefined>>
  /** Whether the user can type at once: for a page whose purpose is the search. */
  readonly isFocused?: boolean
}): Html {
  const { action, label, value, maxCharacters, name = 'search', subject, hidden = {}, isFocused } = options
  return html`<form class="field" role="search"${subject !== undefined && html` aria-label="${subject}"`} action="${action}">${renderHidden(hidden)}<label class="field__label" for="${name}">${label}</label>
<div class="search"><div class="search__box">${renderIcon('search')}<input class="input" id="${name}" name="${name}" type="search" maxlength="${maxCharacters}" autocomplete="off" spellcheck="false" value="${value}"${name === 'search' && html` aria-keyshortcuts="/"`}${isFocused && html` autofocus`}></div><button class="btn btn--quiet">Search</button></div></form>`
}

export interface Column {
  readonly head: string
  /** Shown to screen readers only. */
  readonly isHidden?: boolean
  /** The label of its cells on a narrow screen, if it is not the head. */
  readonly label?: string
  readonly isNowrap?: boolean
}

type Cell = Html | string | number | undefined

/** A table whose first column names the row, unless `isUnnamed`. */
export function renderTable(
  options: {
    readonly caption: string
    readonly kind: string
    readonly columns: readonly (string | Column)[]
    readonly isUnnamed?: boolean
  },
  rows: readonly (readonly Cell[])[],
): Html {
  const { caption, kind, isUnnamed = false } = options
  const columns: readonly Column[] = options.columns.map(column =>
    typeof column === 'string' ? { head: column } : column,
  )
  const renderCell = (cell: Cell, index: number) => {
    if (index === 0 && !isUnnamed) return html`<th role="rowheader" scope="row">${cell}</th>`
    const { head, isHidden, label = head, isNowrap } = columns[index] ?? { head: '' }
    return html`<td role="cell"${!isHidden && html` data-label="${label}"`}${isNowrap && html` class="nowrap"`}>${cell}</td>`
  }
  return html`<table class="table ${kind}" role="table">
<caption class="sr">${caption}</caption>
<thead role="rowgroup"><tr role="row">${columns.map(
    ({ head, isHidden }) =>
      html`<th role="columnheader" scope="col">${isHidden ? html`<span class="sr">${head}</span>` : head}</th>`,
  )}</tr></thead>
<tbody role="rowgroup">${rows.map(row => html`<tr role="row">${row.map(renderCell)}</tr>`)}</tbody>
</table>`
}

/** A list of names and values. */
export function renderFacts(
  facts: readonly (readonly [name: string, value: Html | string])[],
  kind = '',
): Html {
  return html`<dl class="kv${kind !== '' && ` ${kind}`}">${facts.map(
    ([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`,
  )}</dl>`
}

/** A value with a button that copies it, which needs `copy.js`. */
export function renderCopyable(label: string, value: string): Html {
  return html`<div class="field"><p class="field__label">${label}</p><div class="copy"><span class="url url--block">${value}</span><button class="btn btn--quiet btn--small" type="button" data-copy hidden>Copy</button></div></div>`
}

const LINKS = /(https:\/\/[^\s<>"]*[^\s<>".,;)]|[\w.+-]+@[\w.-]+\.[a-z]+)/i

/** Renders whom to ask, as the operator wrote it. The first email address or https URL in it is a link. */
export function renderContact(text: string): Html {
  const [before, found, ...after] = text.split(LINKS)
  if (found === undefined) return html`${text}`
  const href = found.startsWith('https:') ? found : `mailto:${found}`
  return html`${before}<a href="${href}">${found}</a>${after.join('')}`
}

const PATHS = {
  tick: '<path d="m3 8.5 3.2 3.2L13 4.8"/>',
  cross: '<path d="m4 4 8 8M12 4l-8 8"/>',
  warning: '<path d="M8 2.2 14.6 13.6H1.4Z"/><path d="M8 6.4v3.4M8 11.4v.4"/>',
  note: '<circle cx="8" cy="8" r="6.25"/><path d="M8 7.4v3.8M8 4.8v.4"/>',
  search: '<circle cx="7" cy="7" r="4.75"/><path d="m10.5 10.5 4 4"/>',
  // It opens in the same tab.
  launch: '<path d="M2.5 8h11M9 3.5 13.5 8 9 12.5"/>',
  lock: '<rect x="3" y="7" width="10" height="6.5" rx="1"/><path d="M5.2 7V5a2.8 2.8 0 0 1 5.6 0v2"/>',
  back: '<path d="m10 3-5 5 5 5"/>',
} as const

export type IconName = keyof typeof PATHS

/** Renders a 16 px line icon in the colour of its text. It is decoration: the text beside it says the same. */
export function renderIcon(name: IconName): Html {
  return raw(
    `<svg width="16" height="16" viewBox="0 0 16 16" fill="none" stroke="currentColor" stroke-width="1.75" aria-hidden="true">${PATHS[name]}</svg>`,
  )
}

const MARK_PATHS =
  '<path d="M5 29V15a11 11 0 0 1 22 0v14" fill="none" stroke="currentColor" stroke-width="3.2"/><path class="door" d="M11.4 29V15.4a4.6 4.6 0 0 1 9.2 0V29z" fill="currentColor"/>'

const WORD_PATHS =
  '<path d="M14.2 9.2C13 6.9 10.9 5.7 8.2 5.7 4.9 5.7 2.7 7.4 2.7 10c0 6.4 12.2 2.8 12.2 9.3 0 2.9-2.5 4.8-6.2 4.8-3.3 0-5.7-1.4-6.9-4.1M31.9 10.6v14.3M50.4 10.6l6.2 13.2M62.8 10.6l-8.4 19.8M67.6 10.6v19.8M102.1 10.6v14.3M102.1 18c0-4 2.4-6.2 6.4-6M115 5.6v14.6c0 2.4 1.2 3.5 3.4 3.5h1.8M111 11.9h9"/><circle cx="25.8" cy="17.6" r="6.1"/><circle cx="73.7" cy="17.6" r="6.1"/><circle cx="91" cy="17.6" r="6.1"/><path class="door" d="M38.6 3.5v21.4M45 3.5v21.4"/>'

/** Renders the symbol of the logo, an outer and an inner door. */
export function renderMark(className = 'logo__mark'): Html {
  return html`<svg class="${className}" viewBox="0 0 32 32" aria-hidden="true">${raw(MARK_PATHS)}</svg>`
}

/** Renders the logo of the organization, or the symbol with the wordmark or with another name. */
export function renderLogo(href: string, { name, logo }: Brand): Html {
  const label = `${name}: start page`
  if (logo)
    return html`<a class="logo" href="${href}" aria-label="${label}"><img class="logo__image" src="${logo.url}" alt=""></a>`
  const word =
    name === OWN_BRAND.name
      ? html`<svg class="logo__word" viewBox="0 0 122 32" fill="none" stroke="currentColor" stroke-width="2.9" aria-hidden="true">${raw(WORD_PATHS)}</svg>`
      : html`<span class="logo__plain">${name}</span>`
  return html`<a class="logo" href="${href}" aria-label="${label}">${renderMark()}${word}</a>`
}

/** Renders the picture of the login page, a row of doors. */
export function renderLoginArt(): Html {
  return raw(
    '<svg class="gate__art" viewBox="0 0 480 560" fill="none" stroke="currentColor" stroke-width="1.5" aria-hidden="true"><path d="M18 560 181.8 441.9M462 560 298.2 441.9M181.8 441.9H298.2"/><path d="M62.4 528V296a177.6 177.6 0 0 1 355.2 0V528M97.9 502.4V316.8a142.1 142.1 0 0 1 284.2 0V502.4M126.3 481.9V333.4a113.7 113.7 0 0 1 227.3 0V481.9M149 465.6V346.7a91 91 0 0 1 182 0V465.6M167.2 452.5V357.4a72.8 72.8 0 0 1 145.6 0V452.5"/><path class="near" d="M18 560V270a222 222 0 0 1 444 0V560" stroke="currentColor" stroke-width="2"/><path class="far" d="M181.8 441.9V365.9a58.2 58.2 0 0 1 116.3 0V441.9z"/></svg>',
  )
}

const REFUSED = '<path class="shut" d="M10 29V15.2a6 6 0 0 1 12 0V29z" fill="currentColor"/>'
const UNAVAILABLE =
  '<path class="away" d="M10 29V15.2a6 6 0 0 1 12 0V29" fill="none" stroke="currentColor" stroke-width="1.6" stroke-dasharray="2.4 1.9"/>'

const ENDED = '<path d="M10 29V15.2a6 6 0 0 1 12 0V29" fill="none" stroke="currentColor" stroke-width="1.6"/>'

const INNER_DOORS = { refused: REFUSED, unavailable: UNAVAILABLE, ended: ENDED } as const

/** Renders the logo's symbol of an error page: the inner door is red (refused), dashed (unavailable) or plain (ended). */
export function renderErrorArt(kind: keyof typeof INNER_DOORS): Html {
  return raw(
    `<svg class="stop__art" viewBox="0 0 32 32" aria-hidden="true"><path d="M5 29V15a11 11 0 0 1 22 0v14" fill="none" stroke="currentColor" stroke-width="1.6"/>${INNER_DOORS[kind]}</svg>`,
  )
}
