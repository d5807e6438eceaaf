import type { Observation } from 'fhir/r4.js'
import { dayOf } from '../calendar.ts'
import { smoking } from '../catalogue/vitals.ts'
import type { Chart, Numbering, Visit } from '../chart.ts'
import { concept, systems } from '../coding.ts'
import { ageOn } from '../people.ts'
import { observationRecord } from './observation.ts'

/** Asked at the check-ups of everybody who could. */
export function* smokingRecords(visit: Visit, chart: Chart, numbering: Numbering): Generator<Observation> {
  const latest = chart.visits.findLast(it => it.purpose === 'check-up')
  if (visit !== latest || ageOn(chart.person, dayOf(visit.start)) < 13) return
  const [code, display] = smoking.statuses[chart.constitution.smoking]
  yield observationRecord(
    {
      category: 'social-history',
      loinc: smoking.loinc,
      display: smoking.display,
      text: smoking.display,
      value: { valueCodeableConcept: concept(systems.snomed, code, display) },
    },
    visit,
    visit.start + 300_000,
    chart,
    numbering,
  )
}
