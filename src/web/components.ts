import { type Html, html } from './html.ts'
import { type IconName, renderIcon } from './icons.ts'

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

/** Explains why a list is empty, and offers one action. */
export function renderEmptyState(options: {
  readonly title: string
  readonly text: string
  readonly action?: Action
  /** The id of the heading, for `aria-labelledby`. */
  readonly id?: string
}): Html {
  const { title, text, action, id } = options
  return html`<div class="empty"><h2${id !== undefined && html` id="${id}"`}>${title}.</h2> <p>${text}</p> ${
    action && html`<a class="btn btn--quiet btn--small" href="${action.href}">${action.text}</a>`
  }</div>`
}

export function renderField(options: {
  readonly name: string
  readonly label: string
  readonly type?: 'text' | 'password' | 'search'
  readonly value?: string | undefined
  readonly autocomplete?: string
  readonly required?: boolean
  readonly autofocus?: boolean
  readonly error?: string | undefined
  readonly hint?: string
}): Html {
  const {
    name,
    label,
    type = 'text',
    value,
    autocomplete = 'off',
    required = false,
    autofocus = false,
    error,
    hint,
  } = options
  const described = [error !== undefined && `${name}-error`, hint !== undefined && `${name}-hint`].filter(
    Boolean,
  )
  return html`<div class="field"><label class="field__label" for="${name}">${label}</label><input class="input" id="${name}" name="${name}" type="${type}" autocomplete="${autocomplete}" autocapitalize="none" spellcheck="false"${
    value !== undefined && html` value="${value}"`
  }${required && html` required`}${autofocus && html` autofocus`}${
    error !== undefined && html` aria-invalid="true"`
  }${described.length > 0 && html` aria-describedby="${described.join(' ')}"`}>${error !== undefined && html`<p class="field__error" id="${name}-error">${error}</p>`}${hint !== undefined && html`<p class="field__hint" id="${name}-hint">${hint}</p>`}</div>`
}

/** A value with a button that copies it, which needs `copy.js`. */
export function renderCopyable(label: string, value: string): Html {
  return html`<div class="field"><p class="field__label">${label}</p><div class="copy"><span class="url url--block">${value}</span><button class="btn btn--quiet btn--small" type="button" data-copy hidden>Copy</button></div></div>`
}
