import { isFailure, toRecord } from '../../core/index.ts'
import { isId, parseReference, type Resource, saysIncomplete } from '../../fhir/index.ts'
import {
  describeEncounter,
  type EncounterDescription,
  type Person,
  readPerson,
} from '../../web/person/index.ts'
import { type FhirReader, listResources, type Unavailable } from '../base/fhir-reader.ts'
import { LIMITS } from '../base/limits.ts'
import { findNamesakes } from './namesakes.ts'

/** The selected patient, with the data of the launch form. */
export interface Picked {
  readonly kind: 'found'
  readonly person: Person
  readonly encounters: Encounters
  /** Patients with similar names. */
  readonly alike: readonly Person[]
}

/** Encounters of a patient: those in progress, then the newest. */
export interface Encounters {
  readonly listed: readonly Encounter[]
  /** The number of encounters that were read. */
  readonly found: number
  /** The number of all encounters; undefined if the server does not return it. */
  readonly total: number | undefined
  /** Whether the server says that it did not return all of them. */
  readonly isCut: boolean
}

interface PickedOptions {
  readonly fhirBaseUrl: string
  /** All encounters, up to a limit, instead of the first ones. */
  readonly allEncounters?: boolean
}

/** Reads the patient, their encounters, and the patients with the same family name, who may not be in the list. */
export async function readPicked(
  read: FhirReader,
  id: string,
  options: PickedOptions,
): Promise<Picked | Unavailable | { readonly kind: 'absent' }> {
  if (!isId(id)) return { kind: 'absent' }
  const [patient, encounters] = await Promise.all([
    read.resource('Patient', id),
    readEncounters(read, id, options),
  ])
  if (patient.kind !== 'found') return patient
  if (isFailure(encounters)) return encounters
  const person = readPerson(patient.resource)
  return { kind: 'found', person, encounters, alike: await findNamesakes(read, person) }
}

/** A server sorts periods by start or by end, so more are read than listed, and those in progress in any case. */
export async function readEncounters(
  read: FhirReader,
  patient: string,
  { fhirBaseUrl, allEncounters = false }: PickedOptions,
): Promise<Encounters | Unavailable> {
  const { encountersListed, encountersRead } = LIMITS
  const [running, newest] = await Promise.all([
    read(`Encounter?patient=${patient}&status=in-progress&_count=${encountersListed}`),
    read(`Encounter?patient=${patient}&_sort=-date&_total=accurate&_count=${encountersRead}`),
  ])
  if (running.kind === 'unavailable') return running
  if (newest.kind === 'unavailable') return newest
  const bundles = [running, newest].flatMap(it => (it.kind === 'found' ? [it.resource] : []))
  const all = bundles
    .flatMap(bundle => listResources(bundle, 'Encounter'))
    .map(resource => toEncounter(resource, fhirBaseUrl))
    .filter(encounter => encounter.patientId === patient)
  const found = [...new Map(all.map(encounter => [encounter.id, encounter])).values()].toSorted(
    compareUrgency,
  )
  const total = newest.kind === 'found' ? newest.resource.total : 0
  return {
    listed: allEncounters ? found : found.slice(0, encountersListed),
    found: found.length,
    total: typeof total === 'number' ? Math.max(total, found.length) : undefined,
    isCut: bundles.some(saysIncomplete),
  }
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

/** In progress first, then the newest by start. Those without a start come last. */
function compareUrgency(a: Encounter, b: Encounter): number {
  return Number(b.inProgress) - Number(a.inProgress) || toInstant(b) - toInstant(a)
}

function toInstant({ start }: Encounter): number {
  const instant = Date.parse(start ?? '')
  return Number.isNaN(instant) ? 0 : instant
}

function findParticipant(participants: unknown): string | undefined {
  const [first] = Array.isArray(participants) ? participants : []
  const { display } = toRecord(toRecord(first).individual)
  return typeof display === 'string' && display !== '' ? display : undefined
}
