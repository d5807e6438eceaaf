import type { RelatedPerson } from 'fhir/r4.js'
import type { Chart } from '../chart.ts'
import { concept, reference, systems } from '../coding.ts'
import { patientId } from './patient.ts'

/** The mother of a child, who signs in with a sample account and acts for the child. */
export function* relatedPersonRecords({ person }: Chart): Generator<RelatedPerson> {
  if (person.mother === undefined) return
  yield {
    resourceType: 'RelatedPerson',
    id: `mother-${person.number}`,
    active: true,
    patient: reference('Patient', patientId(person)),
    relationship: [concept(systems.roleCode, 'MTH', 'mother')],
    name: [{ use: 'official', family: person.family, given: [person.mother] }],
    gender: 'female',
  }
}
