import type { CareTeam } from 'fhir/r4.js'
import { dateText } from '../calendar.ts'
import { services } from '../catalogue/services.ts'
import { type StaffKey, staff } from '../catalogue/staff.ts'
import type { Chart, Numbering } from '../chart.ts'
import { concept, reference, systems } from '../coding.ts'
import { patientId } from './patient.ts'
import { organizationReference, practitionerReference } from './staff.ts'

/** The staff who follow the lasting problems of a patient, for patients who have more than one. */
export function* careTeamRecords(chart: Chart, numbering: Numbering): Generator<CareTeam> {
  const followed = chart.problems.filter(it => it.entry.followed !== undefined && it.over === undefined)
  const [first] = followed
  if (first === undefined || followed.length < 2 || chart.person.died !== undefined) return
  const members = new Set<StaffKey>(['valcourt'])
  for (const { entry } of followed) {
    for (const key of services[entry.followed ?? entry.found].staff) members.add(key)
  }
  yield {
    resourceType: 'CareTeam',
    id: numbering('careteam'),
    status: 'active',
    name: 'Care team',
    subject: reference('Patient', patientId(chart.person)),
    period: { start: dateText(first.found) },
    participant: [...members].map(key => ({
      role: [concept(systems.snomed, staff[key].role[0], staff[key].role[1])],
      member: practitionerReference(key),
    })),
    managingOrganization: [organizationReference],
  }
}
