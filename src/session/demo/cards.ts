import { type Static, Type } from 'typebox'
import { failApp } from '../../app-reasons/index.ts'
import { capitalize, findOwn, isFailure } from '../../core/index.ts'
import { formatDose, formatMedicine, renderValue } from '../../web/person/index.ts'
import {
  type Html,
  html,
  NOT_RECORDED,
  renderDateTime,
  renderRecordDate,
  renderTable,
} from '../../web/ui/index.ts'
import { findMissingScopes } from '../api/endpoint.ts'
import type { conditionsEndpoint, medicationsEndpoint, vitalsEndpoint } from '../api/lists.ts'
import type { Audience } from '../audience.ts'
import type { Result, SessionFailure } from '../failure.ts'
import { LISTED_RESOURCES } from '../limits.ts'
import {
  CodeableConcept,
  type Condition,
  formatConcept,
  type MedicationRequest,
  type SessionRequest,
} from '../records/resources.ts'
import { searchFhir } from '../records/search-fhir.ts'
import {
  findReadings,
  formatCode,
  formatPressure,
  type Reading,
  renderPressureChart,
  selectRecentReadings,
} from './chart.ts'

export function renderCard(
  options: { readonly id: string; readonly title: string; readonly note?: string; readonly clip?: boolean },
  content: Html,
): Html {
  const { id, title, note, clip = false } = options
  return html`<section class="card${clip && ' card--clip'}" aria-labelledby="${id}">
<div class="card__head"><h2 id="${id}">${title}</h2>${note !== undefined && html`<p class="small muted">${note}</p>`}</div>
${content}
</section>`
}

/** Replaces records that could not be loaded. It never reads as if there were none. */
function renderGap(what: string, failure: SessionFailure, audience: Audience): Html {
  return renderEmptyList(describeFailure(failure), adviseOn(what, failure, audience))
}

/** Where the whole record can be seen. */
function describeFullRecord(audience: Audience): string {
  return audience === 'staff' ? 'check the full record' : 'ask your hospital or practice'
}

function renderEmptyList(event: string, advice = ''): Html {
  return html`<div class="card__body card__body--tight"><p><b>${event}.</b> <span class="muted">${advice}</span></p></div>`
}

export function describeFailure(failure: SessionFailure): string {
  switch (failure.reason) {
    case 'scope-not-granted':
      return 'Not shared with this app'
    case 'access-refused':
      return 'Access refused'
    case 'record-not-found':
      return 'Not found'
    default:
      return 'Could not be loaded'
  }
}

function adviseOn(what: string, failure: SessionFailure, audience: Audience): string {
  const otherwise = describeFullRecord(audience)
  switch (failure.reason) {
    case 'scope-not-granted':
      return `The record may contain ${what}: ${otherwise}.`
    case 'access-refused':
      return `The FHIR server refuses this session access to ${what}.`
    default:
      return `The record may contain ${what}. Reload the page, or ${otherwise}.`
  }
}

/** `4`, or `50 of 120` if not all are shown. */
function formatCount(shown: number, total: number): string {
  return total > shown ? `${shown} of ${total}` : String(shown)
}

const CONDITIONS_CARD = { id: 'h-conditions', title: 'Conditions' } as const

export function renderConditionsCard(
  result: Result<Static<typeof conditionsEndpoint.result>>,
  audience: Audience,
): Html {
  if (isFailure(result)) return renderCard(CONDITIONS_CARD, renderGap('conditions', result, audience))
  const { entry, total } = result
  if (entry.length === 0) return renderCard(CONDITIONS_CARD, renderEmptyList('No active condition recorded'))
  return renderCard(
    { ...CONDITIONS_CARD, note: `${formatCount(entry.length, total)} active, newest first`, clip: true },
    renderTable(
      {
        caption: 'Active conditions',
        kind: 'clin',
        columns: ['Condition', 'Status', { head: 'Recorded', isNowrap: true }],
      },
      entry.map(({ resource }) => listConditionCells(resource, audience)),
    ),
  )
}

function listConditionCells(
  { code, clinicalStatus, verificationStatus, recordedDate }: Condition,
  audience: Audience,
) {
  const exact = audience === 'staff' ? formatCode(code) : undefined
  const doubt = formatDoubt(verificationStatus?.coding?.[0]?.code)
  const status = formatStatus(clinicalStatus?.coding?.[0]?.code)
  return [
    html`${renderValue(formatConcept(code) ?? NOT_RECORDED)}${exact !== undefined && html`<span class="sub">${exact}</span>`}`,
    html`${renderValue(status)}${doubt !== undefined && html`<span class="sub">${doubt}</span>`}`,
    renderRecordDate(recordedDate),
  ]
}

function formatStatus(code: string | undefined): string {
  return code === undefined ? NOT_RECORDED : `${code[0]?.toUpperCase()}${code.slice(1)}`
}

/** Values of Condition.verificationStatus that do not confirm the diagnosis. */
const DOUBTS: Readonly<Record<string, string>> = {
  unconfirmed: 'Not confirmed',
  provisional: 'Provisional',
  differential: 'One of several possible',
  refuted: 'Ruled out',
}

function formatDoubt(code: string | undefined): string | undefined {
  return code === undefined ? undefined : findOwn(DOUBTS, code)
}

const MEDICINES_CARD = { id: 'h-medicines', title: 'Medicines' } as const

export function renderMedicinesCard(
  result: Result<Static<typeof medicationsEndpoint.result>>,
  audience: Audience,
): Html {
  if (isFailure(result)) return renderCard(MEDICINES_CARD, renderGap('medicines', result, audience))
  const { entry, total } = result
  if (entry.length === 0)
    return renderCard(
      MEDICINES_CARD,
      renderEmptyList('No active prescription recorded', 'There may be medicines from elsewhere.'),
    )
  const note = `${formatCount(entry.length, total)} active ${total === 1 ? 'prescription' : 'prescriptions'}`
  return renderCard(
    { ...MEDICINES_CARD, note, clip: true },
    renderTable(
      {
        caption: 'Active prescriptions',
        kind: 'clin',
        columns: ['Medicine', 'How to take it', { head: 'Prescribed', isNowrap: true }],
      },
      entry.map(({ resource }) => [
        formatMedicine(findMedicineName(resource)),
        renderDosage(resource, audience),
        renderRecordDate(resource.authoredOn),
      ]),
    ),
  )
}

function findMedicineName({
  medicationCodeableConcept,
  medicationReference,
}: MedicationRequest): string | undefined {
  const name = formatConcept(medicationCodeableConcept) ?? medicationReference?.display
  return name ?? (medicationReference?.reference === undefined ? undefined : 'Not shared with this app')
}

function renderDosage({ dosageInstruction = [] }: MedicationRequest, audience: Audience): Html {
  const dosages = dosageInstruction.flatMap(dosage => describeDosage(dosage, audience) ?? [])
  if (dosages.length === 0) return html`<span class="muted">${NOT_RECORDED}</span>`
  return html`${dosages.map((dosage, at) => html`${at > 0 && html`<br>`}${dosage}`)}`
}

type Dosage = NonNullable<MedicationRequest['dosageInstruction']>[number]

/** A dosage that is recorded only as codes and quantities is not shown in part: a part could be misread as the whole. */
function describeDosage({ text = '', ...others }: Dosage, audience: Audience): string | undefined {
  if (text.trim() !== '') return formatDose(text.trim())
  const isRecorded = Object.keys(others).some(name => name !== 'id' && name !== 'sequence')
  return isRecorded ? `Recorded without text: ${describeFullRecord(audience)}.` : undefined
}

const PRESSURE_CARD = { id: 'h-pressure', title: 'Blood pressure' } as const

export function renderPressureCard(
  result: Result<Static<typeof vitalsEndpoint.result>>,
  audience: Audience,
  now: number,
): Html {
  if (isFailure(result)) return renderCard(PRESSURE_CARD, renderGap('measurements', result, audience))
  const all = findReadings(result.entry.map(({ resource }) => resource))
  const { readings, note } = selectRecentReadings(all, now)
  const [latest] = readings
  if (latest === undefined) return renderCard(PRESSURE_CARD, renderEmptyList('No blood pressure recorded'))
  return renderCard(
    { ...PRESSURE_CARD, note },
    html`<div class="card__body card__body--tight">
<p class="stat"><b>${formatPressure(latest.systolic)}/${formatPressure(latest.diastolic)}</b> <span>mmHg</span> <span class="push">${renderDateTime(latest.date)}</span></p>
${readings.length > 1 && renderPressureChart(readings.toReversed())}
${readings.length > 1 && renderReadings(readings)}
</div>`,
  )
}

function renderReadings(readings: readonly Reading[]): Html {
  return html`<details class="more"><summary>Show the readings</summary>
<table class="table table--plain"><caption class="sr">Blood pressure readings in mmHg</caption>
<thead><tr><th scope="col">Date</th><th scope="col" class="num">Systolic</th><th scope="col" class="num">Diastolic</th></tr></thead>
<tbody>${readings.map(
    ({ date, systolic, diastolic }) =>
      html`<tr><td>${renderRecordDate(date)}</td><td class="num">${formatPressure(systolic)}</td><td class="num">${formatPressure(diastolic)}</td></tr>`,
  )}</tbody></table></details>`
}

const AllergyIntolerance = Type.Object({
  resourceType: Type.Literal('AllergyIntolerance'),
  code: Type.Optional(CodeableConcept),
  criticality: Type.Optional(Type.String()),
  clinicalStatus: Type.Optional(CodeableConcept),
  verificationStatus: Type.Optional(CodeableConcept),
})
type AllergyIntolerance = Static<typeof AllergyIntolerance>

export type Allergies = Result<readonly AllergyIntolerance[]>

const SCOPE = 'patient/AllergyIntolerance.rs'

export async function loadAllergies(sessionRequest: SessionRequest): Promise<Allergies> {
  const missing = findMissingScopes([SCOPE], sessionRequest.session.scope)
  if (missing.length > 0) return failApp('scope-not-granted', { scopes: missing.join(' ') })
  const found = await searchFhir(sessionRequest, {
    type: 'AllergyIntolerance',
    schema: AllergyIntolerance,
    params: {},
    limit: LISTED_RESOURCES,
    keeps: isCurrent,
  })
  return isFailure(found) ? found : found.resources
}

/** An allergy without a status counts as current: leaving it out could cause harm. */
function isCurrent({ clinicalStatus, verificationStatus }: AllergyIntolerance): boolean {
  return (
    !hasCoding(clinicalStatus, ['inactive', 'resolved']) &&
    !hasCoding(verificationStatus, ['refuted', 'entered-in-error'])
  )
}

function hasCoding(concept: CodeableConcept | undefined, codes: readonly string[]): boolean {
  return concept?.coding?.some(({ code }) => code !== undefined && codes.includes(code)) ?? false
}

/** Shows all current allergies, or why there are none to show. A blank would read as "none". */
export function renderAllergies(allergies: Allergies): Html {
  if (isFailure(allergies)) return html`<span class="unknown">${describeFailure(allergies)}</span>`
  if (allergies.length === 0) return html`<span class="unknown">None recorded</span>`
  return html`${allergies.map((allergy, at) => html`${at > 0 && ', '}${describeAllergy(allergy)}`)}`
}

function describeAllergy({ code, criticality }: AllergyIntolerance): string {
  const name = formatConcept(code) ?? 'Name not recorded'
  return `${capitalize(name)}${criticality === 'high' ? ' (high risk)' : ''}`
}
