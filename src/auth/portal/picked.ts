import { isId, isRecord, parseReference, type Resource } from '../../fhir/index.ts'
import {
  describeEncounter,
  type EncounterDescription,
  findAlike,
  type Person,
  readPerson,
} from '../../web/index.ts'
import type { FhirReader } from './fhir-reader.ts'
import { listResources, type Unavailable } from './patients.ts'

/** The selected patient, with the data of the launch form. */
export interface Picked {
  readonly kind: 'found'
  readonly person: Person
  readonly encounters: readonly Encounter[]
  /** Patients with similar names. */
  readonly alike: readonly Person[]
}

const ENCOUNTERS_LISTED = 20
const NAMESAKES_LOOKED_AT = 50

/** Reads the patient, their encounters, and the patients with the same family name, who may not be in the list. */
export async function readPicked(
  read: FhirReader,
  id: string,
  fhirBaseUrl: string,
): Promise<Picked | Unavailable | { readonly kind: 'absent' }> {
  if (!isId(id)) return { kind: 'absent' }
  const [patient, bundle] = await Promise.all([
    read(`Patient/${id}`),
    read(`Encounter?patient=${id}&_sort=-date&_count=${ENCOUNTERS_LISTED}`),
  ])
  if (patient.kind !== 'found') return patient
  if (bundle.kind === 'unavailable') return bundle
  const person = readPerson(patient.resource)
  const encounters = bundle.kind === 'absent' ? [] : listResources(bundle.resource, 'Encounter')
  return {
    kind: 'found',
    person,
    encounters: encounters
      .map(resource => toEncounter(resource, fhirBaseUrl))
      .filter(encounter => encounter.patientId === person.id)
      .toSorted(compareUrgency),
    alike: findAlike(person, await findNamesakes(read, person)),
  }
}

async function findNamesakes(read: FhirReader, { name }: Person): Promise<readonly Person[]> {
  if (name.family === undefined) return []
  const family = encodeURIComponent(name.family.replace(/[\\,|$]/g, '\\$&'))
  const response = await read(`Patient?family=${family}&_count=${NAMESAKES_LOOKED_AT}`)
  return response.kind === 'found' ? listResources(response.resource, 'Patient').map(readPerson) : []
}

/** An encounter in the portal. */
export interface Encounter extends EncounterDescription {
  readonly id: string
  /** Undefined if the subject is not a Patient of this server. */
  readonly patientId: string | undefined
  readonly who: string | undefined
}

export function toEncounter(resource: Resource, fhirBaseUrl: string): Encounter {
  const { reference } = toRecord(resource.subject)
  const subject = typeof reference === 'string' ? parseReference(reference, fhirBaseUrl) : undefined
  return {
    ...describeEncounter(resource),
    id: resource.id ?? '',
    patientId: subject?.type === 'Patient' ? subject.id : undefined,
    who: findParticipant(resource.participant),
  }
}

/** In progress first, then the newest. */
export function compareUrgency(a: Encounter, b: Encounter): number {
  return Number(b.inProgress) - Number(a.inProgress) || (b.start ?? '').localeCompare(a.start ?? '')
}

function findParticipant(participants: unknown): string | undefined {
  const [first] = Array.isArray(participants) ? participants : []
  const { display } = toRecord(toRecord(first).individual)
  return typeof display === 'string' && display !== '' ? display : undefined
}

function toRecord(value: unknown): Readonly<Record<string, unknown>> {
  return isRecord(value) ? value : {}
}
