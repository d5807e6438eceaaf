import type { Decimal } from '../../fhir/index.ts'
import { findEffectiveTime } from '../api/vitals.ts'
import type { Observation } from '../records/resources.ts'
import { findCode } from './concept.ts'

export const BLOOD_PRESSURE = '85354-9'
const SYSTOLIC = '8480-6'
const DIASTOLIC = '8462-4'
const LOINC = 'http://loinc.org'

/** One measurement of blood pressure, in mmHg. */
export interface Reading {
  readonly at: number
  /** The date as it is recorded. */
  readonly date: string
  readonly systolic: Decimal
  readonly diastolic: Decimal
}

/** Entered in error, cancelled or not yet measured: not readings. */
const STANDING: ReadonlySet<string | undefined> = new Set(['final', 'amended', 'corrected', 'preliminary'])

/** The readings among Observations, in the order they came. Half a measurement, or one in another unit, is left out. */
export function readingsOf(observations: readonly Observation[]): readonly Reading[] {
  return observations.flatMap(observation => {
    const reading = STANDING.has(observation.status) ? readingOf(observation) : undefined
    return reading ? [reading] : []
  })
}

function readingOf(observation: Observation): Reading | undefined {
  const date = findEffectiveTime(observation)
  const at = Date.parse(date ?? '')
  const systolic = millimetres(observation, SYSTOLIC)
  const diastolic = millimetres(observation, DIASTOLIC)
  if (date === undefined || Number.isNaN(at) || systolic === undefined || diastolic === undefined)
    return undefined
  return { at, date, systolic, diastolic }
}

function millimetres({ component = [] }: Observation, code: string): Decimal | undefined {
  const quantity = component.find(part => findCode(part.code, LOINC) === code)?.valueQuantity
  const inMmHg = quantity?.code === 'mm[Hg]' || /^mm\s?\[?hg\]?$/i.test(quantity?.unit ?? '')
  return inMmHg ? quantity?.value : undefined
}

const YEAR_MS = 365 * 24 * 3_600_000
const SHOWN = 12

/** What the chart shows: the last 12 months, or the last readings where those months have fewer than two. */
export function selectRecentReadings(
  readings: readonly Reading[],
  now: number,
): { readings: readonly Reading[]; note: string } {
  const lastYear = readings.filter(({ at }) => at >= now - YEAR_MS)
  if (lastYear.length >= 2) return { readings: lastYear, note: 'Last 12 months' }
  const last = readings.slice(0, SHOWN)
  return { readings: last, note: last.length === 1 ? 'One reading' : `Last ${last.length} readings` }
}
