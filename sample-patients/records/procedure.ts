import type { Procedure } from 'fhir/r4.js'
import { instantText } from '../calendar.ts'
import { procedures } from '../catalogue/procedures.ts'
import { services } from '../catalogue/services.ts'
import type { Chart, Numbering, Visit } from '../chart.ts'
import { concept, reference, systems } from '../coding.ts'
import { patientId } from './patient.ts'
import { practitionerReference } from './staff.ts'

/** What was done when a problem was found. */
export function* procedureRecords(visit: Visit, chart: Chart, numbering: Numbering): Generator<Procedure> {
  const { problem, end } = visit
  if (visit.purpose !== 'found' || problem === undefined || end === undefined) return
  for (const key of problem.entry.procedures ?? []) {
    const [code, display] = procedures[key]
    yield {
      resourceType: 'Procedure',
      id: numbering('procedure'),
      status: 'completed',
      code: concept(systems.snomed, code, display),
      subject: reference('Patient', patientId(chart.person)),
      encounter: reference('Encounter', visit.id),
      performedPeriod: { start: instantText(visit.start + 300_000), end: instantText(end) },
      performer: [{ actor: practitionerReference(services[visit.service].staff[0]) }],
      reasonReference: [reference('Condition', problem.id, problem.entry.display)],
    }
  }
}
