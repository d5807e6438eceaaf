import { type Static, Type } from '@sinclair/typebox'
import { type Html, html } from '../../web/index.ts'
import { findMissingScopes } from '../api/row.ts'
import { fail, type Result, succeed } from '../failure.ts'
import { LISTED_RESOURCES } from '../limits.ts'
import { CodeableConcept, formatConcept, type SessionRequest } from '../records/resources.ts'
import { searchFhir } from '../records/search-fhir.ts'
import { describeFailure } from './cards.ts'

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
  if (missing.length > 0) return fail({ kind: 'missing-scope', missing })
  const found = await searchFhir(sessionRequest, {
    type: 'AllergyIntolerance',
    schema: AllergyIntolerance,
    params: {},
    limit: LISTED_RESOURCES,
  })
  return found.ok ? succeed(found.value.resources.filter(isCurrent)) : found
}

/** An allergy without a status counts as current: leaving it out could cause harm. */
function isCurrent({ clinicalStatus, verificationStatus }: AllergyIntolerance): boolean {
  return (
    !hasCode(clinicalStatus, ['inactive', 'resolved']) &&
    !hasCode(verificationStatus, ['refuted', 'entered-in-error'])
  )
}

function hasCode(concept: CodeableConcept | undefined, codes: readonly string[]): boolean {
  return concept?.coding?.some(({ code }) => code !== undefined && codes.includes(code)) ?? false
}

/** Shows all current allergies, or why there are none to show. A blank would read as "none". */
export function renderAllergies(allergies: Allergies): Html {
  if (!allergies.ok) return html`<span class="unknown">${describeFailure(allergies.failure)}</span>`
  if (allergies.value.length === 0) return html`<span class="unknown">None recorded</span>`
  return html`${allergies.value.map((allergy, at) => html`${at > 0 && ', '}${describeAllergy(allergy)}`)}`
}

function describeAllergy({ code, criticality }: AllergyIntolerance): string {
  const name = formatConcept(code) ?? 'Name not recorded'
  return `${name.charAt(0).toUpperCase()}${name.slice(1)}${criticality === 'high' ? ' (high risk)' : ''}`
}
