import { isId } from '../../fhir/index.ts'
import { findAlike, type Person, readPerson } from '../../web/index.ts'
import { compareUrgency, type Encounter, toEncounter } from './encounters.ts'
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
  const answer = await read(`Patient?family=${family}&_count=${NAMESAKES_LOOKED_AT}`)
  return answer.kind === 'found' ? listResources(answer.resource, 'Patient').map(readPerson) : []
}
