import type { Decimal } from '../../fhir/index.ts'
import { findEffectiveTime } from '../api/lists.ts'
import type { CodeableConcept, Observation } from '../records/resources.ts'

const SYSTEMS: Readonly<Record<string, string>> = {
  'http://snomed.info/sct': 'SNOMED CT',
  'http://loinc.org': 'LOINC',
  'http://www.nlm.nih.gov/research/umls/rxnorm': 'RxNorm',
  'http://hl7.org/fhir/sid/icd-10': 'ICD-10',
  'http://hl7.org/fhir/sid/icd-10-cm': 'ICD-10-CM',
}

export function formatCode(concept: CodeableConcept | undefined): string | undefined {
  const coding = concept?.coding?.find(({ code, system }) => code !== undefined && system !== undefined)
  const system = coding?.system === undefined ? undefined : SYSTEMS[coding.system]
  return system === undefined ? undefined : `${system} ${coding?.code}`
}

function findCode(concept: CodeableConcept | undefined, system: string): string | undefined {
  return concept?.coding?.find(coding => coding.system === system)?.code
}

export const BLOOD_PRESSURE = '85354-9'
const SYSTOLIC = '8480-6'
const DIASTOLIC = '8462-4'
const LOINC = 'http://loinc.org'

export interface Reading {
  readonly at: number
  readonly date: string
  readonly systolic: Decimal
  readonly diastolic: Decimal
}

/** Observations that are entered in error, cancelled or not yet final are not readings. */
const FINAL_STATUSES: ReadonlySet<string | undefined> = new Set([
  'final',
  'amended',
  'corrected',
  'preliminary',
])

/** Skips incomplete readings and readings in another unit. */
export function findReadings(observations: readonly Observation[]): readonly Reading[] {
  return observations.flatMap(observation => {
    const reading = FINAL_STATUSES.has(observation.status) ? toReading(observation) : undefined
    return reading ? [reading] : []
  })
}

function toReading(observation: Observation): Reading | undefined {
  const date = findEffectiveTime(observation)
  const at = Date.parse(date ?? '')
  const systolic = readMillimetres(observation, SYSTOLIC)
  const diastolic = readMillimetres(observation, DIASTOLIC)
  if (date === undefined || Number.isNaN(at) || systolic === undefined || diastolic === undefined)
    return undefined
  return { at, date, systolic, diastolic }
}

function readMillimetres({ component = [] }: Observation, code: string): Decimal | undefined {
  const quantity = component.find(part => findCode(part.code, LOINC) === code)?.valueQuantity
  const inMmHg = quantity?.code === 'mm[Hg]' || /^mm\s?\[?hg\]?$/i.test(quantity?.unit ?? '')
  return inMmHg ? quantity?.value : undefined
}

const YEAR_MS = 365 * 24 * 3_600_000
const SHOWN = 12

/** Selects the last 12 months, or the latest readings if those months have fewer than two. */
export function selectRecentReadings(
  readings: readonly Reading[],
  now: number,
): { readings: readonly Reading[]; note: string } {
  const lastYear = readings.filter(({ at }) => at >= now - YEAR_MS)
  if (lastYear.length >= 2) return { readings: lastYear, note: 'Last 12 months' }
  const last = readings.slice(0, SHOWN)
  return { readings: last, note: last.length === 1 ? 'One reading' : `Last ${last.length} readings` }
}
