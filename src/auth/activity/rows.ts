import { formatRepeats, type KeptRecord } from '../../audit/index.ts'
import { badge, formatDate, type Html, html } from '../../web/index.ts'
import { describeApp, describeDecision, type Names } from './describe.ts'

/** Renders the rows of the table, each with its record id, by which the script recognizes new ones. */
export function renderRows(records: readonly KeptRecord[], names: Names): readonly Html[] {
  return records.map(record => renderRow(record, names))
}

const SHORT = 24

function renderRow(record: KeptRecord, names: Names): Html {
  const { scope, title, why } = describeDecision(record, names)
  const app = describeApp(record, names)
  return html`<tr role="row" data-record="${record.id}"${!record.allowed && html` class="refused"`}>
<td role="cell" class="time" data-label="Time">${renderTime(record.at)}</td>
<td role="cell" data-label="Result">${record.allowed ? badge('Allowed', 'ok') : badge('Refused', 'bad')} <span class="status">${record.status}</span></td>
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
function insertBreaks(address: string): Html | string {
  if (address === '') return 'the base'
  return html`${address.split(/(?=[?&])|(?<=\/)/).map((part, at) => html`${at > 0 && html`<wbr>`}${part}`)}`
}
