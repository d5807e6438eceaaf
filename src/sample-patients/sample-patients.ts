import { readOwnFile } from '../core/index.ts'
import type { Resource } from '../fhir/index.ts'
import { createCopier } from './copy.ts'
import { createDateMover } from './move-dates.ts'

export interface SampleOptions {
  readonly count?: number
  /** Milliseconds. The histories end on this day, and encounters in progress began shortly before this hour. */
  readonly now: number
}

/** The hospital and its patients, each patient before the resources about them. Patients beyond the recorded ones are copies. */
export function* samplePatients({ count = 60, now }: SampleOptions): Generator<Resource> {
  yield* parseLines(readOwnFile('src/sample-patients/hospital.ndjson'))
  const moveDates = createDateMover(now)
  const recorded = readRecorded().slice(0, count).map(moveDates)
  for (const record of recorded) yield* parseLines(record)
  if (count === recorded.length) return
  const copy = createCopier(recorded)
  for (let number = recorded.length + 1; number <= count; number++) yield* parseLines(copy(number))
}

/** The lines of each patient, in the order of their numbers. An empty line is between two patients. */
function readRecorded(): readonly string[] {
  const files = ['src/sample-patients/patients.ndjson', 'src/sample-patients/us-core.ndjson'] as const
  return files.flatMap(file => readOwnFile(file).split('\n\n'))
}

function* parseLines(lines: string): Generator<Resource> {
  for (const line of lines.split('\n')) if (line !== '') yield JSON.parse(line)
}
