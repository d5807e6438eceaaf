import type { KeptRecord } from '../../audit/index.ts'
import { formatRepeats } from '../../audit/index.ts'
import { formatDate, type Html, html, renderBadge, renderEmptyState, renderPage } from '../../web/index.ts'
import type { AuthContext } from '../context.ts'
import type { Login } from '../login/login.ts'
import { paths } from '../paths.ts'
import { makeSignedInBar, showsSampleData } from '../portal/page-parts.ts'
import type { Names } from './describe.ts'
import { describeApp, describeDecision } from './describe.ts'
import { buildUrl, isNarrowed, type View } from './view.ts'

/** Renders the rows of the table, each with its record id, by which the script recognizes new ones. */
function renderRows(records: readonly KeptRecord[], names: Names): readonly Html[] {
  return records.map(record => renderRow(record, names))
}

const SHORT = 24

function renderRow(record: KeptRecord, names: Names): Html {
  const { scope, title, why } = describeDecision(record, names)
  const app = describeApp(record, names)
  return html`<tr role="row" data-record="${record.id}"${!record.allowed && html` class="refused"`}>
<td role="cell" class="time" data-label="Time">${renderTime(record.at)}</td>
<td role="cell" data-label="Result">${record.allowed ? renderBadge('Allowed', 'ok') : renderBadge('Refused', 'bad')} <span class="status">${record.status}</span></td>
<td role="cell" data-label="Request">${renderRequest(record)}</td>
<td role="cell" data-label="App"${app.length <= SHORT && html` class="nowrap"`}>${app}</td>
<td role="cell" data-label="Decided by">${scope === undefined ? html`<span>${title}</span>` : html`<code>${insertBreaks(scope)}</code>`}<span class="sub">${why}</span></td>
</tr>`
}

/** A count stands for several requests, possibly with different URLs. */
function renderRequest({ method, request, repeats }: KeptRecord): Html {
  if (repeats !== null) return html`<span>${formatRepeats(repeats)}, within a minute</span>`
  return html`<code><span class="verb">${method ?? ''}</span> ${insertBreaks(request ?? '')}</code>`
}

function renderTime(at: number): Html {
  const instant = new Date(at).toISOString()
  const [day = '', time = ''] = instant.slice(0, -1).split('T')
  return html`<time datetime="${instant}">${time} <span class="sub">${formatDate(day)}</span></time>`
}

/** Allows line breaks between the parts of a URL. */
function insertBreaks(url: string): Html | string {
  if (url === '') return 'the base'
  return html`${url.split(/(?=[?&])|(?<=\/)/).map((part, at) => html`${at > 0 && html`<wbr>`}${part}`)}`
}

export interface ActivityPageOptions {
  readonly login: Login
  readonly view: View
  readonly records: readonly KeptRecord[]
  readonly names: Names
  /** Of the last hour. Undefined if there are too many to count. */
  readonly counts: { readonly allowed: number; readonly refused: number } | undefined
  /** Where older records follow. */
  readonly older: View['before']
  /** Whether the audit trail is on. */
  readonly kept: boolean
}

export function renderActivityPage({ settings }: AuthContext, options: ActivityPageOptions): Html {
  const { login, view, records, names } = options
  return renderPage(
    {
      title: 'Activity',
      bar: makeSignedInBar(login, 'activity'),
      sampleData: showsSampleData(settings),
      scripts: ['activity.js'],
    },
    html`<div class="pagehead"><div><h1>Activity</h1>
<p class="pagehead__lead">Every request to the FHIR server, and the scope that decided it.</p></div>
<p class="base"><span>FHIR base</span> <span class="url">${settings.fhirBaseUrl}</span></p></div>
${renderFilters(options)}
<div id="activity" data-live="${view.before ? 'off' : 'on'}">${
      records.length === 0 ? renderEmpty(options) : renderTable(renderRows(records, names))
    }</div>
${renderOlderLink(options)}
<p class="small muted after">Times are UTC. Search values that could name a person are hidden. Tokens are never shown or stored here.</p>`,
  )
}

function renderFilters({ view, counts }: ActivityPageOptions): Html {
  return html`<div class="filters"><nav aria-label="Show"><ul class="tabs">
${renderTab(view, 'all', 'All', counts && counts.allowed + counts.refused)}${renderTab(view, 'allowed', 'Allowed', counts?.allowed)}${renderTab(view, 'refused', 'Refused', counts?.refused)}
</ul></nav>
<p class="live live--still">${counts && html`<span>Counts for the last hour</span>`} <a class="btn btn--quiet btn--small" href="${buildUrl(view, { before: undefined })}">Refresh</a></p></div>
<details class="more narrow"${isNarrowed(view) && html` open`}><summary>Filter by app, patient or launch</summary>
<form class="narrow__form" method="get" action="${paths.activity}">
${view.result !== 'all' && html`<input type="hidden" name="result" value="${view.result}">`}
${renderField('app', 'Client id', view.app)}${renderField('patient', 'Patient id', view.patient)}${renderField('launch', 'Launch id', view.launch)}
<p class="narrow__act"><button class="btn btn--small">Show</button>${isNarrowed(view) && html` <a class="btn btn--quiet btn--small" href="${buildUrl(view, { app: undefined, patient: undefined, launch: undefined, before: undefined })}">Show all</a>`}</p>
</form></details>`
}

function renderTab(view: View, result: View['result'], text: string, count: number | undefined): Html {
  const current = view.result === result && html` aria-current="page"`
  return html`<li><a href="${buildUrl(view, { result, before: undefined })}"${current}>${text}${count !== undefined && html` <span class="count">${count}</span>`}</a></li>`
}

function renderField(name: string, label: string, value: string | undefined): Html {
  return html`<p class="field"><label class="field__label" for="${name}">${label}</label><input class="input" id="${name}" name="${name}" value="${value ?? ''}" autocomplete="off" autocapitalize="none" spellcheck="false"></p>`
}

function renderTable(rows: readonly Html[]): Html {
  return html`<div class="card card--clip"><table class="table table--stack log" role="table">
<caption class="sr">FHIR requests, newest first</caption>
<thead role="rowgroup"><tr role="row"><th role="columnheader" scope="col">Time</th><th role="columnheader" scope="col">Result</th><th role="columnheader" scope="col">Request</th><th role="columnheader" scope="col">App</th><th role="columnheader" scope="col">Decided by</th></tr></thead>
<tbody role="rowgroup">${rows}</tbody></table></div>`
}

function renderEmpty({ view, kept }: ActivityPageOptions): Html {
  if (!kept)
    return renderEmptyState({
      title: 'The audit trail is off',
      text: 'The setting smart.server.audit turns it off.',
    })
  if (isNarrowed(view) || view.result !== 'all')
    return renderEmptyState({
      title: 'No matching requests',
      text: 'No request to the FHIR server matches these filters.',
      action: { href: paths.activity, text: 'Show all requests' },
    })
  return renderEmptyState({
    title: 'No requests yet',
    text: 'Launch an app. Its requests to the FHIR server will appear here.',
    action: { href: paths.portal, text: 'Go to patients' },
  })
}

function renderOlderLink({ view, older }: ActivityPageOptions): Html | undefined {
  if (!older) return undefined
  return html`<p class="actions"><a class="btn btn--quiet" href="${buildUrl(view, { before: older })}">Show older requests</a></p>`
}
