import type { Static } from '@sinclair/typebox'
import { dateHtml, doseText, type Html, html, medicineText, NOT_RECORDED } from '../../web/index.ts'
import type { medicationsRow } from '../api/medications.ts'
import type { Result } from '../failure.ts'
import type { MedicationRequest } from '../records/resources.ts'
import { renderCard, renderEmptyList, renderGap } from './card.ts'
import { formatConcept } from './concept.ts'
import { countNote } from './count-note.ts'

const CARD = { id: 'h-medicines', title: 'Medicines' } as const

export function renderMedicinesCard(result: Result<Static<typeof medicationsRow.body>>): Html {
  if (!result.ok) return renderCard(CARD, renderGap('medicines', result.failure))
  const { entry, total } = result.value
  if (entry.length === 0)
    return renderCard(
      CARD,
      renderEmptyList(
        'No active prescription recorded',
        'The patient may take medicines that were bought or prescribed elsewhere.',
      ),
    )
  const note = `${countNote(entry.length, total)} active ${total === 1 ? 'prescription' : 'prescriptions'}`
  return renderCard({ ...CARD, note, clip: true }, table(entry.map(({ resource }) => medicineRow(resource))))
}

function table(rows: readonly Html[]): Html {
  return html`<table class="table clin" role="table">
<caption class="sr">Active prescriptions</caption>
<thead role="rowgroup"><tr role="row"><th role="columnheader" scope="col">Medicine</th><th role="columnheader" scope="col">How to take it</th><th role="columnheader" scope="col">Prescribed</th></tr></thead>
<tbody role="rowgroup">${rows}</tbody>
</table>`
}

function medicineRow(request: MedicationRequest): Html {
  return html`<tr role="row"><th role="rowheader" scope="row">${medicineText(nameOf(request))}</th><td role="cell" data-label="How to take it">${dosageHtml(
    request,
  )}</td><td role="cell" class="nowrap" data-label="Prescribed">${dateHtml(request.authoredOn)}</td></tr>
`
}

/** The order's own words, or what it refers to. */
function nameOf({ medicationCodeableConcept, medicationReference }: MedicationRequest): string | undefined {
  return formatConcept(medicationCodeableConcept) ?? medicationReference?.display
}

function dosageHtml({ dosageInstruction = [] }: MedicationRequest): Html {
  const texts = dosageInstruction
    .map(({ text }) => text?.trim())
    .filter(text => text !== undefined && text !== '')
  if (texts.length === 0) return html`<span class="muted">${NOT_RECORDED}</span>`
  return html`${texts.map((text, at) => html`${at > 0 && html`<br>`}${doseText(text ?? '')}`)}`
}
