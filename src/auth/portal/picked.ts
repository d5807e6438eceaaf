import { isId } from '../../fhir/index.ts'
import { alikeTo, type Person, personOf } from '../../web/index.ts'
import { byUrgency, type Encounter, encounterOf } from './encounters.ts'
import type { FhirReader } from './fhir-reader.ts'
import { type Away, resourcesOf } from './patients.ts'

/** The patient that was picked, with what the launch form needs. */
export interface Picked {
  readonly kind: 'found'
  readonly person: Person
  readonly encounters: readonly Encounter[]
  /** Patients that could be taken for this one. */
  readonly alike: readonly Person[]
}

const ENCOUNTERS_LISTED = 20
const NAMESAKES_LOOKED_AT = 50

/** Reads the patient, their encounters, and who has the same family name: also those who are not in the list. */
export async function readPicked(
  read: FhirReader,
  id: string,
  fhirBaseUrl: string,
): Promise<Picked | Away | { readonly kind: 'absent' }> {
  if (!isId(id)) return { kind: 'absent' }
  const [patient, bundle] = await Promise.all([
    read(`Patient/${id}`),
    read(`Encounter?patient=${id}&_sort=-date&_count=${ENCOUNTERS_LISTED}`),
  ])
  if (patient.kind !== 'found') return patient
  if (bundle.kind === 'away') return bundle
  const person = personOf(patient.resource)
  const encounters = bundle.kind === 'absent' ? [] : resourcesOf(bundle.resource, 'Encounter')
  return {
    kind: 'found',
    person,
    encounters: encounters
      .map(resource => encounterOf(resource, fhirBaseUrl))
      .filter(encounter => encounter.patientId === person.id)
      .toSorted(byUrgency),
    alike: alikeTo(person, await namesakesOf(read, person)),
  }
}

async function namesakesOf(read: FhirReader, { name }: Person): Promise<readonly Person[]> {
  if (name.family === undefined) return []
  const family = encodeURIComponent(name.family.replace(/[\\,|$]/g, '\\$&'))
  const answer = await read(`Patient?family=${family}&_count=${NAMESAKES_LOOKED_AT}`)
  return answer.kind === 'found' ? resourcesOf(answer.resource, 'Patient').map(personOf) : []
}
