import { DAY_MS } from '../../../core/index.ts'
import {
  findSearchParameter,
  type Params,
  parseUncounted,
  type RangeComparison,
  type SearchClause,
} from '../../../fhir/index.ts'
import { LIST_VALUES } from '../limits.ts'

type Param = Params[number]

/** The clauses of a granular scope in the query of the upstream. */
export interface SentClauses {
  /** Added to the caller's parameters. */
  readonly params: Params
  /** Parameters of the caller that are not sent, because the added ones are narrower. */
  readonly replaced: ReadonlySet<Param>
  /** Whether all clauses are expressed, so that few matches are outside the scope. */
  readonly isComplete: boolean
}

const NONE: SentClauses = { params: [], replaced: new Set(), isComplete: true }

/**
 * Expresses clauses by parameters that every upstream reads in the same way, and that find at least as much. Servers differ
 * in dates without a day, in lists and repetitions of dates, in quantities and in modifiers: a date is sent as a range of
 * whole days that is a day longer at both ends, a number as a range without its unit, a modifier not at all.
 */
export function buildScopeClauses(type: string, clauses: Params, own: Params, baseUrl: string): SentClauses {
  const byCode = Map.groupBy(clauses, ([name]) => name)
  return [...byCode].reduce<SentClauses>((sent, [name, clausesOfName]) => {
    const more = buildClauses(type, name, clausesOfName, own, baseUrl)
    return {
      params: [...sent.params, ...more.params],
      replaced: sent.replaced.union(more.replaced),
      isComplete: sent.isComplete && more.isComplete,
    }
  }, NONE)
}

/** The clauses as they are, for an upstream that reads searches as R4 defines. */
export function keepClauses(clauses: Params): SentClauses {
  const isSent = ([, value]: Param) => value.split(',').length <= LIST_VALUES
  const params = clauses.filter(isSent)
  return { ...NONE, params, isComplete: params.length === clauses.length }
}

/** Alternatives without a common bound, such as `ge2026,lt2020`, are clauses of several searches. */
export function splitAlternatives(type: string, clauses: Params, baseUrl: string): readonly Params[] {
  return clauses.reduce<readonly Params[]>(
    (lists, [name, value]) => {
      const ranges = listComparisons(parseUncounted(type, name, value, baseUrl)).map(findRange)
      const isSplit = isUnbounded(findHull(ranges)) && !ranges.some(isUnbounded)
      const values = isSplit ? value.split(',') : [value]
      return lists.flatMap(list => values.map(it => [...list, [name, it] as const]))
    },
    [[]],
  )
}

function isUnbounded({ low, high }: Range): boolean {
  return low === UNBOUNDED.low && high === UNBOUNDED.high
}

function buildClauses(
  type: string,
  name: string,
  clauses: Params,
  own: Params,
  baseUrl: string,
): SentClauses {
  const kind = findSearchParameter(type, name)?.type
  if (name.includes(':') || name.includes('.')) return { ...NONE, isComplete: false }
  if (kind !== 'date' && kind !== 'number' && kind !== 'quantity') return keepClauses(clauses)
  const range = clauses
    .map(([, value]) => findHull(listComparisons(parseUncounted(type, name, value, baseUrl)).map(findRange)))
    .reduce(intersect, UNBOUNDED)
  return kind === 'date' ? buildDates(type, name, range, own, baseUrl) : finish(name, range, String, EMPTY)
}

/** Both ends inclusive. */
interface Range {
  readonly low: number
  readonly high: number
}

const UNBOUNDED: Range = { low: Number.NEGATIVE_INFINITY, high: Number.POSITIVE_INFINITY }

/** A range that contains the matches of all alternatives. */
function findHull(ranges: readonly Range[]): Range {
  const low = ranges.map(it => it.low)
  const high = ranges.map(it => it.high)
  return ranges.length === 0 ? UNBOUNDED : { low: Math.min(...low), high: Math.max(...high) }
}

function listComparisons(clause: SearchClause | { readonly kind: 'error' }): readonly RangeComparison[] {
  return clause.kind === 'date' || clause.kind === 'number' || clause.kind === 'quantity' ? clause.values : []
}

function findRange({ prefix, low, high }: RangeComparison): Range {
  switch (prefix) {
    case 'eq':
    case 'ap':
      return { low, high }
    case 'ge':
      return { ...UNBOUNDED, low }
    case 'gt':
    case 'sa':
      return { ...UNBOUNDED, low: high }
    case 'le':
      return { ...UNBOUNDED, high }
    case 'lt':
    case 'eb':
      return { ...UNBOUNDED, high: low }
    case 'ne':
      return UNBOUNDED
  }
}

function intersect(a: Range, b: Range): Range {
  return { low: Math.max(a.low, b.low), high: Math.min(a.high, b.high) }
}

const EMPTY: ReadonlySet<Param> = new Set()

/** A day more at both ends: servers read dates without a time zone in their own. */
function buildDates(type: string, name: string, range: Range, own: Params, baseUrl: string): SentClauses {
  const wide = { low: range.low - DAY_MS, high: range.high + DAY_MS }
  const ofCaller = own.filter(([it]) => it.split(':')[0] === name)
  const { left, replaced } = reconcile(type, wide, ofCaller, baseUrl)
  const sent = finish(name, left, formatDay, replaced)
  return { ...sent, isComplete: sent.isComplete || ofCaller.length > 0 }
}

/**
 * Of two lower bounds, or two upper ones, the narrower is sent: a server may refuse both. The caller's own is replaced only
 * if the range implies it, and the range is left out where the caller's is narrower, or cannot be compared.
 */
function reconcile(type: string, range: Range, own: Params, baseUrl: string) {
  const replaced = new Set<Param>()
  let left = range
  for (const param of own) {
    const [comparison, another] = listComparisons(parseUncounted(type, ...param, baseUrl))
    const { prefix, low, high } = another ? NO_COMPARISON : (comparison ?? NO_COMPARISON)
    const isLower = prefix === 'ge' || prefix === 'gt'
    const isUpper = prefix === 'le' || prefix === 'lt'
    const isImplied = (isLower && high < range.low) || (isUpper && low > range.high)
    if (isImplied) replaced.add(param)
    else
      left = {
        low: isUpper || prefix === 'eb' ? left.low : UNBOUNDED.low,
        high: isLower || prefix === 'sa' ? left.high : UNBOUNDED.high,
      }
  }
  return { left, replaced }
}

const NO_COMPARISON: RangeComparison = { prefix: 'ne', low: 0, high: 0 }

function finish(
  name: string,
  { low, high }: Range,
  format: (end: number) => string | undefined,
  replaced: ReadonlySet<Param>,
): SentClauses {
  const ends = [['ge', low] as const, ['le', high] as const].flatMap(([prefix, end]) => {
    const text = Number.isFinite(end) ? format(end) : undefined
    return text === undefined ? [] : [[name, `${prefix}${text}`] as const]
  })
  return { params: ends, replaced, isComplete: ends.length > 0 }
}

/** Undefined for a year that FHIR cannot express. */
function formatDay(time: number): string | undefined {
  const text = Math.abs(time) > LATEST ? '' : new Date(time).toISOString()
  return /^(?!0000)\d{4}-/.test(text) ? text.slice(0, 'yyyy-mm-dd'.length) : undefined
}

const LATEST = 8_640_000_000_000_000
