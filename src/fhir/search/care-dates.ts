import { type DateRange, earliest, latest, parseDateRange } from '../date-range.ts'
import { findSearchParameter, listSearchParameters } from '../definitions.ts'
import { fail } from '../failure.ts'
import type { Params } from '../interaction.ts'
import type { Resource } from '../r4.ts'
import { entriesOf } from './index-entries.ts'
import type { BadSearch } from './parse-query.ts'

/** `start` and `end` of `$everything`: the range of the dates of care; undefined where neither is given. */
export function careRangeIn(params: Params): DateRange | BadSearch | undefined {
  const [start, end] = ['start', 'end'].map(wanted => params.filter(([name]) => name === wanted))
  if (!start?.length && !end?.length) return undefined
  const [from, to] = [start, end].map(given => given?.map(([, value]) => parseDateRange(value)))
  const isRead = [from, to].every(given => !given || (given.length <= 1 && !given.includes(undefined)))
  if (!isRead)
    return fail({
      problem: 'bad-search',
      code: 'invalid',
      text: 'Cannot read start or end: expected one date',
    })
  return { low: from?.[0]?.low ?? earliest, high: to?.[0]?.high ?? latest }
}

// Dates of persons, of payments and of the record itself: no care was given then.
const NOT_OF_CARE: ReadonlySet<string> = new Set([
  '_lastUpdated',
  'birthdate',
  'death-date',
  'modified',
  'payment-date',
  'value-date',
])

/** The search parameters that tell when the care was given of which a resource tells. */
export function listCareDateParameters(type: string): readonly string[] {
  return listSearchParameters(type).flatMap(({ type: kind, code }) =>
    kind === 'date' && !NOT_OF_CARE.has(code) ? [code] : [],
  )
}

/** Whether a date of care is in the range. A resource without one is in every range. */
export function isInCareRange(resource: Resource, { low, high }: DateRange, baseUrl: string): boolean {
  const dates = listCareDateParameters(resource.resourceType).flatMap(code => {
    const parameter = findSearchParameter(resource.resourceType, code)
    return parameter ? entriesOf(resource, parameter, baseUrl).filter(entry => entry.kind === 'date') : []
  })
  return dates.length === 0 || dates.some(date => date.low <= high && date.high >= low)
}
