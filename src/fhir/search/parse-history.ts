import { isFailure } from '../../core/index.ts'
import type { Params } from '../interaction.ts'
import { PAGE_RESOURCES } from '../limits.ts'
import { failFor } from '../reasons/reasons.ts'
import type { BadSearch } from './bad-search.ts'
import type { Range } from './clause.ts'
import { DEFAULT_COUNT } from './parse-query.ts'
import { parseUncounted } from './parse-search.ts'

/** The parameters of a history (R4 http.html#history). */
export interface HistoryQuery {
  readonly count: number
  /** Milliseconds: versions created at this time or later. */
  readonly since: number | undefined
  /** Versions that were current at some time in this range. */
  readonly at: Range | undefined
  readonly used: Params
}

export function parseHistory(params: Params, lenient: boolean): HistoryQuery | BadSearch {
  let query: HistoryQuery = { count: DEFAULT_COUNT, since: undefined, at: undefined, used: [] }
  for (const pair of params) {
    const read = parseParameter(query, pair)
    if (read === 'unknown') {
      if (!lenient) return failFor('history-parameter-unknown', { parameter: pair[0] })
    } else if (isFailure(read)) return read
    else query = { ...query, ...read, used: [...query.used, pair] }
  }
  return query
}

function parseParameter(
  query: HistoryQuery,
  [name, value]: readonly [string, string],
): Partial<HistoryQuery> | BadSearch | 'unknown' {
  switch (name) {
    case '_format':
    case '_pretty':
      return {}
    case '_count':
      return /^\d{1,9}$/.test(value)
        ? { count: Math.min(Number(value), PAGE_RESOURCES) }
        : failFor('count-malformed', { most: PAGE_RESOURCES })
    case '_since': {
      const time = parseTime(value)
      return time ? { since: time.low } : failFor('since-malformed')
    }
    case '_at': {
      const time = parseTime(value)
      return time && query.at === undefined ? { at: time } : failFor('at-malformed')
    }
    case '_sort':
      // The default order of a history.
      return value === '-_lastUpdated' ? {} : failFor('history-sorted')
    default:
      return 'unknown'
  }
}

/** Parses a date as the value of a date parameter (every type has `_lastUpdated`), without prefixes. */
function parseTime(value: string): Range | undefined {
  const clause = parseUncounted('Basic', '_lastUpdated', value, '')
  if (clause.kind !== 'date' || /^[a-z]/.test(value)) return undefined
  const [range, another] = clause.values
  return another ? undefined : range
}
