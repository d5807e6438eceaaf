import { formatRepeats, type KeptRecord } from '../../audit/index.ts'
import { badge, dateText, type Html, html } from '../../web/index.ts'
import { appText, decidedBy, type Names } from './words.ts'

/** The rows of the table. Each has the number of its record, by which the script tells the new ones. */
export function rowsHtml(records: readonly KeptRecord[], names: Names): readonly Html[] {
  return records.map(record => row(record, names))
}

/** A name that need not be broken. */
const SHORT = 24

function row(record: KeptRecord, names: Names): Html {
  const { scope, title, why } = decidedBy(record, names)
  const app = appText(record, names)
  return html`<tr role="row" data-record="${record.id}"${!record.allowed && html` class="refused"`}>
<td role="cell" class="time" data-label="Time">${timeHtml(record.at)}</td>
<td role="cell" data-label="Result">${record.allowed ? badge('Allowed', 'ok') : badge('Refused', 'bad')} <span class="status">${record.status}</span></td>
<td role="cell" data-label="Request">${requestHtml(record)}</td>
<td role="cell" data-label="App"${app.length <= SHORT && html` class="nowrap"`}>${app}</td>
<td role="cell" data-label="Decided by">${scope === undefined ? html`<span>${title}</span>` : html`<code>${broken(scope)}</code>`}<span class="sub">${why}</span></td>
</tr>`
}

/** A count stands for several requests, which may have had several addresses. */
function requestHtml({ method, request, repeats }: KeptRecord): Html {
  if (repeats !== null) return html`<span>${formatRepeats(repeats)}, within a minute</span>`
  return html`<code><span class="verb">${method ?? ''}</span> ${broken(request ?? '')}</code>`
}

function timeHtml(at: number): Html {
  const instant = new Date(at).toISOString()
  const [day = '', time = ''] = instant.slice(0, -1).split('T')
  return html`<time datetime="${instant}">${time} <span class="sub">${dateText(day)}</span></time>`
}

/** An address may be broken before its parts. */
function broken(address: string): Html | string {
  if (address === '') return 'the base'
  return html`${address.split(/(?=[?&])|(?<=\/)/).map((part, at) => html`${at > 0 && html`<wbr>`}${part}`)}`
}
