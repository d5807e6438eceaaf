import { type Action, renderActions } from './components.ts'
import { type Html, html } from './html.ts'
import { renderErrorArt } from './icons.ts'
import { renderPage } from './page.ts'
import { formatTime, renderDate } from './person/date.ts'
import type { Bar } from './top-bar.ts'

export interface ErrorPageOptions {
  /** `ended`: a normal end, which is no error. */
  readonly kind: 'refused' | 'unavailable' | 'ended'
  readonly title: string
  /** Paragraphs: the effect on the record, and the advice. */
  readonly text: readonly (Html | string)[]
  /** Error code or status, for the support staff. */
  readonly code: string
  /** Contains no token and no patient name. */
  readonly reason?: string
  /** The request id. */
  readonly reference: string
  /** The page that shows the event with this reference. */
  readonly referenceUrl?: string | undefined
  readonly now: number
  /** The first one is the main button. */
  readonly actions?: readonly Action[]
  /** Further rows of the card, such as the app. */
  readonly facts?: readonly (readonly [label: string, value: Html | string])[]
  /** Content below the actions, such as the state of the servers. */
  readonly more?: Html
  readonly bar?: Bar
  readonly site?: string
  readonly sampleData?: boolean
}

/** Renders event, effect and advice, then code, time and reference. */
export function renderErrorPage(options: ErrorPageOptions): Html {
  const { title, site, bar = { kind: 'flow' }, sampleData = false } = options
  return renderPage(
    { title, bar, sampleData, width: 'flow', ...(site === undefined ? {} : { site }) },
    renderError(options),
  )
}

function renderError(options: ErrorPageOptions): Html {
  const { kind, title, text, actions = [], more } = options
  return html`<div class="stop">${renderErrorArt(kind)}<div class="stop__body">
<h1>${title}</h1>
${text.map(paragraph => html`<p>${paragraph}</p>`)}
${actions.length > 0 && renderActions(...actions)}
${more}
<div class="card"><dl class="kv kv--table">${listFacts(options).map(
    ([label, value]) => html`<div><dt>${label}</dt><dd>${value}</dd></div>`,
  )}</dl></div>
</div></div>`
}

function listFacts({
  code,
  reason,
  facts = [],
  now,
  reference,
  referenceUrl,
}: ErrorPageOptions): (readonly [string, Html | string])[] {
  return [
    ['Error', html`<code>${code}</code>`],
    ...(reason === undefined ? [] : [['Reason', reason] as const]),
    ...facts,
    ['Time', html`${renderDate(now)} ${formatTime(now, { seconds: true, withZone: true })}`],
    [
      'Reference',
      referenceUrl === undefined
        ? html`<code>${reference}</code>`
        : html`<a href="${referenceUrl}" target="_blank"><code>${reference}</code></a>`,
    ],
  ]
}
