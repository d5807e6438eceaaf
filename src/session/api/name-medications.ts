import { isRecord, parseReference } from '../../fhir/index.ts'
import {
  CodeableConcept,
  fitsSchema,
  formatConcept,
  type MedicationRequest,
  readFhir,
  type SessionRequest,
} from '../records/resources.ts'
import { findMissingScopes } from './row.ts'

/** Ids in one search: more would not fit into a URL. */
const IDS = 100

/**
 * Adds the name of a referenced Medication as the display of the reference. It is contained in the request, or the
 * session may read it. Otherwise the request stays as it is.
 */
export async function nameMedications(
  sessionRequest: SessionRequest,
  requests: readonly MedicationRequest[],
): Promise<readonly MedicationRequest[]> {
  const { fhirBaseUrl, scope } = sessionRequest.session
  const ids = new Set(requests.flatMap(it => findMedicationId(it, fhirBaseUrl) ?? []))
  const isReadable = findMissingScopes(['patient/Medication.rs'], scope).length === 0
  const names = isReadable ? await readNames(sessionRequest, [...ids]) : new Map<string, string>()
  return requests.map(it =>
    withDisplay(it, findContainedName(it) ?? names.get(findMedicationId(it, fhirBaseUrl) ?? '')),
  )
}

function findMedicationId(
  { medicationReference }: MedicationRequest,
  fhirBaseUrl: string,
): string | undefined {
  const { reference, display } = medicationReference ?? {}
  if (reference === undefined || display !== undefined) return undefined
  const target = parseReference(reference, fhirBaseUrl)
  return target?.type === 'Medication' ? target.id : undefined
}

function findContainedName({ medicationReference, contained = [] }: MedicationRequest): string | undefined {
  const id = medicationReference?.reference?.replace(/^#/, '')
  return findName(contained.find(it => isRecord(it) && it.id === id))
}

function findName(medication: unknown): string | undefined {
  const code = isRecord(medication) ? medication.code : undefined
  return fitsSchema(CodeableConcept, code) ? formatConcept(code) : undefined
}

async function readNames(
  sessionRequest: SessionRequest,
  ids: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const names = new Map<string, string>()
  for (let at = 0; at < ids.length; at += IDS) {
    const _id = ids.slice(at, at + IDS).join(',')
    const query = new URLSearchParams({ _id, _count: String(IDS) })
    const read = await readFhir(sessionRequest, `${sessionRequest.session.fhirBaseUrl}/Medication?${query}`)
    for (const medication of read.ok ? listResources(read.value) : []) {
      const name = findName(medication)
      if (name !== undefined) names.set(String(medication.id), name)
    }
  }
  return names
}

function listResources(bundle: unknown): readonly Readonly<Record<string, unknown>>[] {
  if (!isRecord(bundle) || !Array.isArray(bundle.entry)) return []
  const resources = bundle.entry.map(it => (isRecord(it) ? it.resource : undefined))
  return resources.filter(isRecord).filter(it => it.resourceType === 'Medication')
}

function withDisplay(request: MedicationRequest, display: string | undefined): MedicationRequest {
  const { medicationReference } = request
  return display === undefined || medicationReference?.display !== undefined
    ? request
    : { ...request, medicationReference: { ...medicationReference, display } }
}
