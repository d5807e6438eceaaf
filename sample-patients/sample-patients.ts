import type { Resource as R4Resource } from 'fhir/r4.js'
import type { Resource } from '../src/fhir/index.ts'
import { todayOf } from './calendar.ts'
import { type Chart, createNumbering, type Numbering, type Visit } from './chart.ts'
import { makeChart } from './make-chart.ts'
import { people } from './people.ts'
import { createRandom } from './random.ts'
import { allergyRecords } from './records/allergy.ts'
import { careTeamRecords } from './records/care-team.ts'
import { conditionRecord } from './records/condition.ts'
import { encounterRecord } from './records/encounter.ts'
import { immunizationRecords } from './records/immunization.ts'
import { type LastDone, labRecords, surveyRecords } from './records/labs.ts'
import { medicationRequestRecord } from './records/medication-request.ts'
import { noteRecords } from './records/note.ts'
import { patientRecord } from './records/patient.ts'
import { procedureRecords } from './records/procedure.ts'
import { relatedPersonRecords } from './records/related-person.ts'
import { smokingRecords } from './records/smoking.ts'
import { hospital } from './records/staff.ts'
import { vitalRecords } from './records/vitals.ts'

export interface SampleOptions {
  readonly count?: number
  readonly seed?: string
  /** Milliseconds; histories are told from this day, and what is still going on from this hour. */
  readonly now: number
}

/**
 * The hospital and its patients, each patient before what is about them. The same seed and day give the same people
 * and histories; the hour moves only what is going on today.
 */
export function* samplePatients({ count = 60, seed = 'sallyport', now }: SampleOptions): Generator<Resource> {
  const today = todayOf(now)
  yield* asStored(hospital())
  for (const person of people(count, seed, today)) {
    const numbering = createNumbering(person)
    const chart = makeChart(person, today, createRandom(`${seed}/chart/${person.number}`), numbering)
    yield* asStored(records(chart, numbering))
  }
}

function* records(chart: Chart, numbering: Numbering): Generator<R4Resource> {
  yield patientRecord(chart)
  for (const problem of chart.problems) yield conditionRecord(problem, chart)
  yield* allergyRecords(chart, numbering)
  yield* immunizationRecords(chart, numbering)
  for (const prescription of chart.prescriptions) yield medicationRequestRecord(prescription, chart)
  const last: LastDone = new Map()
  for (const visit of chart.visits) yield* visitRecords(visit, chart, last, numbering)
  yield* careTeamRecords(chart, numbering)
  yield* relatedPersonRecords(chart)
}

function* visitRecords(
  visit: Visit,
  chart: Chart,
  last: LastDone,
  numbering: Numbering,
): Generator<R4Resource> {
  yield encounterRecord(visit, chart)
  yield* vitalRecords(visit, chart, numbering)
  yield* labRecords(visit, chart, last, numbering)
  yield* surveyRecords(visit, chart, numbering)
  yield* smokingRecords(visit, chart, numbering)
  yield* procedureRecords(visit, chart, numbering)
  yield* noteRecords(visit, chart, numbering)
}

/** The generator is typed by the R4 definitions; the server treats resources as JSON that is not validated yet. */
function* asStored(typed: Iterable<R4Resource>): Generator<Resource> {
  for (const resource of typed) yield resource as Resource
}
