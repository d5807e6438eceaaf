import type { Static } from '@sinclair/typebox'
import { dateHtml, type Html, html, NOT_RECORDED, valueHtml } from '../../web/index.ts'
import type { conditionsRow } from '../api/conditions.ts'
import type { Result } from '../failure.ts'
import type { Condition } from '../records/resources.ts'
import { renderCard, renderEmptyList, renderGap } from './card.ts'
import { formatCode, formatConcept } from './concept.ts'
import { countNote } from './count-note.ts'

const CARD = { id: 'h-conditions', title: 'Conditions' } as const

export function renderConditionsCard(result: Result<Static<typeof conditionsRow.body>>): Html {
  if (!result.ok) return renderCard(CARD, renderGap('conditions', result.failure))
  const { entry, total } = result.value
  if (entry.length === 0)
    return renderCard(
      CARD,
      renderEmptyList('No active condition recorded', 'The record that is shared with this app holds none.'),
    )
  const rows = entry.map(({ resource }) => conditionRow(resource))
  return renderCard(
    { ...CARD, note: `${countNote(entry.length, total)} active, newest first`, clip: true },
    table(rows),
  )
}

function table(rows: readonly Html[]): Html {
  return html`<table class="table clin" role="table">
<caption class="sr">Active conditions</caption>
<thead role="rowgroup"><tr role="row"><th role="columnheader" scope="col">Condition</th><th role="columnheader" scope="col">Status</th><th role="columnheader" scope="col">Recorded</th></tr></thead>
<tbody role="rowgroup">${rows}</tbody>
</table>`
}

function conditionRow({ code, clinicalStatus, verificationStatus, recordedDate }: Condition): Html {
  const exact = formatCode(code)
  const doubt = doubtText(verificationStatus?.coding?.[0]?.code)
  return html`<tr role="row"><th role="rowheader" scope="row">${valueHtml(formatConcept(code) ?? NOT_RECORDED)}${
    exact !== undefined && html`<span class="sub">${exact}</span>`
  }</th><td role="cell" data-label="Status">${valueHtml(statusText(clinicalStatus?.coding?.[0]?.code))}${
    doubt !== undefined && html`<span class="sub">${doubt}</span>`
  }</td><td role="cell" class="nowrap" data-label="Recorded">${dateHtml(recordedDate)}</td></tr>
`
}

function statusText(code: string | undefined): string {
  return code === undefined ? NOT_RECORDED : `${code[0]?.toUpperCase()}${code.slice(1)}`
}

/** Condition.verificationStatus, where it says that the diagnosis does not (yet) stand. */
const DOUBTS: Readonly<Record<string, string>> = {
  unconfirmed: 'Not confirmed',
  provisional: 'Provisional',
  differential: 'One of several possible',
  refuted: 'Ruled out',
}

function doubtText(code: string | undefined): string | undefined {
  return code === undefined ? undefined : DOUBTS[code]
}
