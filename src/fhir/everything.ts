import { isFailure, isRecord, mapOrFail, toRecord } from '../core/index.ts'
import { type DateRange, earliest, latest, parseDateRange } from './date-range.ts'
import { findSearchParameter, listSearchParameters } from './definitions.ts'
import type { Params } from './interaction.ts'
import { toPlain } from './json.ts'
import type { FhirProblem } from './problem.ts'
import { failFor } from './reasons/reasons.ts'
import type { Resource } from './resource.ts'
import type { BadSearch } from './search/bad-search.ts'
import { indexParameter } from './search/index-entries.ts'

const VALUE = /^value[A-Z]/
const TAKEN = {
  Patient: ['start', 'end', '_since', '_type', '_count'],
  Encounter: ['_type', '_count'],
} as const satisfies Readonly<Record<string, readonly string[]>>

/** The types that have `$everything`. */
export type EverythingType = keyof typeof TAKEN

/** The first problem in the parameters of `$everything`, from the URL or from the body. Unknown parameters are refused. */
export function findEverythingProblem(type: EverythingType, params: Params): FhirProblem | undefined {
  const taken: readonly string[] = TAKEN[type]
  const unknown = params.find(([name]) => !taken.includes(name) && name !== '_format' && name !== '_pretty')
  if (unknown)
    return failFor('everything-parameter-unknown', { parameter: unknown[0], type, taken: taken.join(', ') })
  const range = readCareRange(params)
  return range && isFailure(range) ? range : undefined
}

/** The parameters of a Parameters resource in the form of URL parameters; none without a body. */
export function readPostedParams(body: unknown): Params | FhirProblem {
  if (body === undefined) return []
  const posted = toPlain(body)
  const { resourceType, parameter = [] } = toRecord(posted)
  if (resourceType !== 'Parameters' || !Array.isArray(parameter)) return unreadable
  return mapOrFail(parameter, it => readParam(it) ?? unreadable)
}

function readParam(parameter: unknown): readonly [string, string] | undefined {
  if (!isRecord(parameter)) return undefined
  const { name, ...rest } = parameter
  const [member, ...others] = Object.entries(rest)
  if (typeof name !== 'string' || !member || others.length > 0) return undefined
  const [type, value] = member
  const isPlain = typeof value === 'string' || typeof value === 'number'
  return VALUE.test(type) && isPlain ? [name, String(value)] : undefined
}

const unreadable: FhirProblem = failFor('body-not-parameters')

/** `start` and `end` of `$everything`: the range of the dates of care; undefined if neither is given. */
export function readCareRange(params: Params): DateRange | BadSearch | undefined {
  const [start, end] = ['start', 'end'].map(wanted => params.filter(([name]) => name === wanted))
  if (!start?.length && !end?.length) return undefined
  const [from, to] = [start, end].map(given => given?.map(([, value]) => parseDateRange(value)))
  const isRead = [from, to].every(given => !given || (given.length <= 1 && !given.includes(undefined)))
  if (!isRead) return failFor('care-dates-malformed')
  return { low: from?.[0]?.low ?? earliest, high: to?.[0]?.high ?? latest }
}

// Dates of persons, payments and the record itself, not of care.
const NOT_OF_CARE: ReadonlySet<string> = new Set([
  '_lastUpdated',
  'birthdate',
  'death-date',
  'modified',
  'payment-date',
  'value-date',
])

/** The search parameters with the dates of the care that a resource documents. */
export function listCareDateParameters(type: string): readonly string[] {
  return listSearchParameters(type).flatMap(({ type: kind, code }) =>
    kind === 'date' && !NOT_OF_CARE.has(code) ? [code] : [],
  )
}

/** Whether a date of care is in the range. A resource without such a date is in every range. */
export function isInCareRange(resource: Resource, { low, high }: DateRange, baseUrl: string): boolean {
  const dates = listCareDateParameters(resource.resourceType).flatMap(code => {
    const parameter = findSearchParameter(resource.resourceType, code)
    return parameter
      ? indexParameter(resource, parameter, baseUrl).filter(entry => entry.kind === 'date')
      : []
  })
  return dates.length === 0 || dates.some(date => date.low <= high && date.high >= low)
}
