import { type TSchema, Type } from 'typebox'
import { isFailure, isRecord } from '../../core/index.ts'
import { Members, NONE, OneOf } from '../../endpoint/index.ts'
import { parseReference } from '../../fhir/index.ts'
import type { Result } from '../failure.ts'
import { LISTED_RESOURCES } from '../limits.ts'
import {
  CodeableConcept,
  Condition,
  fitsSchema,
  formatConcept,
  MedicationRequest,
  Observation,
  readFhir,
  type SessionRequest,
} from '../records/resources.ts'
import { type FoundResources, searchFhir } from '../records/search-fhir.ts'
import { defineEndpoint, findMissingScopes } from './endpoint.ts'

/** The Bundle of a response (API-9). It has no links, because a link would need the token. */
function BundleOf<Resource extends TSchema>(resource: Resource) {
  return Type.Object({
    resourceType: Type.Literal('Bundle'),
    type: Type.Literal('searchset'),
    total: Type.Integer({ minimum: 0, description: 'Number of matches; entry may contain fewer.' }),
    entry: Type.Array(Type.Object({ resource, search: Type.Object({ mode: Type.Literal('match') }) })),
  })
}

function createBundle<T>(found: Result<FoundResources<T>>, count?: number) {
  if (isFailure(found)) return found
  return {
    resourceType: 'Bundle' as const,
    type: 'searchset' as const,
    total: found.total,
    entry: found.resources
      .slice(0, count)
      .map(resource => ({ resource, search: { mode: 'match' as const } })),
  }
}

const Count = Type.Integer({
  minimum: 1,
  maximum: LISTED_RESOURCES,
  default: 50,
  description: 'Maximum number of results.',
})

const CLINICAL_STATUS = ['active', 'recurrence', 'relapse', 'inactive', 'remission', 'resolved'] as const

/**
 * Servers differ in where they sort undated conditions, so the app reads all of them, sorts, and then cuts to
 * `_count`.
 */
export const conditionsEndpoint = defineEndpoint({
  path: '/conditions',
  title: 'Conditions',
  description:
    'Conditions of the patient with one clinical status, newest recorded date first, undated last.',
  scopes: ['patient/Condition.rs'],
  query: Members({
    status: OneOf(CLINICAL_STATUS, { default: 'active', description: 'FHIR Condition clinical status.' }),
    _count: Count,
  }),
  result: BundleOf(Condition),
  answer: async (sessionRequest, { status, _count }) =>
    createBundle(
      await searchFhir(sessionRequest, {
        type: 'Condition',
        schema: Condition,
        params: { 'clinical-status': status, _sort: '-recorded-date' },
        limit: LISTED_RESOURCES,
        keeps: condition => hasStatus(condition, status),
        findDate: ({ recordedDate }) => recordedDate,
      }),
      _count,
    ),
})

/** A server that does not support `clinical-status` ignores it. A resolved condition must not appear as active. */
function hasStatus({ clinicalStatus }: Condition, status: string): boolean {
  return clinicalStatus?.coding?.some(({ code }) => code === status) ?? false
}

export const medicationsEndpoint = defineEndpoint({
  path: '/medications',
  title: 'Medications',
  description: `Active MedicationRequests of the patient, newest first; at most ${LISTED_RESOURCES}. A reference to a Medication has the name as its display, if the Medication is contained or the session has patient/Medication.rs.`,
  query: NONE,
  scopes: ['patient/MedicationRequest.rs'],
  result: BundleOf(MedicationRequest),
  answer: async sessionRequest => {
    const found = await searchFhir(sessionRequest, {
      type: 'MedicationRequest',
      schema: MedicationRequest,
      params: { status: 'active' },
      limit: LISTED_RESOURCES,
      keeps: ({ status }) => status === 'active',
      findDate: ({ authoredOn }) => authoredOn,
    })
    if (isFailure(found)) return found
    return createBundle({ ...found, resources: await nameMedications(sessionRequest, found.resources) })
  },
})

/** Vital signs (API-8). A record may hold years of them, so the FHIR server sorts and the app reads only the newest. */
export const vitalsEndpoint = defineEndpoint({
  path: '/vitals',
  title: 'Vital signs',
  description: 'Vital-signs Observations of the patient, newest first.',
  scopes: ['patient/Observation.rs'],
  query: Members({
    code: Type.Optional(
      Type.String({
        pattern: '^[0-9]{1,7}-[0-9]$',
        description: 'A LOINC code, such as 85354-9 for blood pressure.',
      }),
    ),
    _count: Count,
  }),
  result: BundleOf(Observation),
  answer: async (sessionRequest, { code, _count }) =>
    createBundle(
      await searchFhir(sessionRequest, {
        type: 'Observation',
        schema: Observation,
        params: {
          category: 'vital-signs',
          ...(code === undefined ? {} : { code: `http://loinc.org|${code}` }),
          _sort: '-date',
        },
        limit: _count,
        findDate: findEffectiveTime,
      }),
    ),
})

export function findEffectiveTime(observation: Observation): string | undefined {
  const { effectiveDateTime, effectiveInstant, effectivePeriod } = observation
  return effectiveDateTime ?? effectiveInstant ?? effectivePeriod?.end ?? effectivePeriod?.start
}

/** More ids would not fit into a URL. */
const IDS_PER_SEARCH = 100

/**
 * Adds the name of a referenced Medication as the display of the reference. It is contained in the request, or the
 * session may read it. Otherwise the request stays as it is.
 */
async function nameMedications(
  sessionRequest: SessionRequest,
  requests: readonly MedicationRequest[],
): Promise<readonly MedicationRequest[]> {
  const { fhirBaseUrl, scope } = sessionRequest.session
  const ids = new Set(requests.flatMap(request => findMedicationId(request, fhirBaseUrl) ?? []))
  const isReadable = findMissingScopes(['patient/Medication.rs'], scope).length === 0
  const names = isReadable ? await readNames(sessionRequest, [...ids]) : new Map<string, string>()
  return requests.map(request =>
    withDisplay(
      request,
      findContainedName(request) ?? names.get(findMedicationId(request, fhirBaseUrl) ?? ''),
    ),
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
  return findName(contained.find(resource => isRecord(resource) && resource.id === id))
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
  for (let start = 0; start < ids.length; start += IDS_PER_SEARCH) {
    const _id = ids.slice(start, start + IDS_PER_SEARCH).join(',')
    const query = new URLSearchParams({ _id, _count: String(IDS_PER_SEARCH) })
    const read = await readFhir(sessionRequest, `${sessionRequest.session.fhirBaseUrl}/Medication?${query}`)
    for (const medication of isFailure(read) ? [] : listResources(read)) {
      const name = findName(medication)
      if (name !== undefined) names.set(String(medication.id), name)
    }
  }
  return names
}

function listResources(bundle: unknown): readonly Readonly<Record<string, unknown>>[] {
  if (!isRecord(bundle) || !Array.isArray(bundle.entry)) return []
  const resources = bundle.entry.map(entry => (isRecord(entry) ? entry.resource : undefined))
  return resources.filter(isRecord).filter(({ resourceType }) => resourceType === 'Medication')
}

function withDisplay(request: MedicationRequest, display: string | undefined): MedicationRequest {
  const { medicationReference } = request
  return display === undefined || medicationReference?.display !== undefined
    ? request
    : { ...request, medicationReference: { ...medicationReference, display } }
}
