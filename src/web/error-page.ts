import type { Bar } from './bar.ts'
import type { Action } from './components.ts'
import { type Html, html } from './html.ts'
import { stopArt } from './icons.ts'
import { page } from './page.ts'
import { formatTime, renderDate } from './person/date.ts'

export interface ErrorPageOptions {
  /** The inner door is red (refused) or dashed (something is away). */
  readonly kind: 'refused' | 'away'
  /** What happened. */
  readonly title: string
  /** What it means for the record, and what to do: a paragraph each. */
  readonly text: readonly (Html | string)[]
  /** Error code or status, for whoever is asked for help. */
  readonly code: string
  /** Why, in words that may be shown: no token, no patient name. */
  readonly reason?: string
  /** The request id. */
  readonly reference: string
  readonly now: number
  /** The first is the main button. */
  readonly actions?: readonly Action[]
  /** Further rows of the card, such as the app. */
  readonly facts?: readonly (readonly [label: string, value: Html | string])[]
  /** Below the actions, such as which server answers. */
  readonly more?: Html
  readonly bar?: Bar
  readonly site?: string
  readonly sampleData?: boolean
}

/** What happened, what it means, what to do; then code, time and reference (design: Errors). */
export function renderErrorPage(options: ErrorPageOptions): Html {
  const { title, site, bar = { kind: 'flow' }, sampleData = false } = options
  return page(
    { title, bar, sampleData, width: 'flow', ...(site === undefined ? {} : { site }) },
    stop(options),
  )
}

function stop(options: ErrorPageOptions): Html {
  const { kind, title, text, actions = [], more } = options
  return html`<div class="stop">${stopArt(kind)}<div class="stop__body">
<h1>${title}</h1>
${text.map(paragraph => html`<p>${paragraph}</p>`)}
${
  actions.length > 0 &&
  html`<div class="actions">${actions.map(
    ({ href, text }, at) => html`<a class="btn${at > 0 && ' btn--quiet'}" href="${href}">${text}</a>`,
  )}</div>`
}
${more}
<div class="card"><dl class="kv kv--table">${rows(options).map(
    ([label, value]) => html`<div><dt>${label}</dt><dd>${value}</dd></div>`,
  )}</dl></div>
</div></div>`
}

function rows({
  code,
  reason,
  facts = [],
  now,
  reference,
}: ErrorPageOptions): (readonly [string, Html | string])[] {
  return [
    ['Error', html`<code>${code}</code>`],
    ...(reason === undefined ? [] : [['Reason', reason] as const]),
    ...facts,
    ['Time', html`${renderDate(now)} ${formatTime(now, { seconds: true })}`],
    ['Reference', html`<code>${reference}</code>`],
  ]
}
