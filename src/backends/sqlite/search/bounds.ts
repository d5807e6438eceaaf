import { type Comparison, normalise, type SearchClause } from '../../../fhir/index.ts'
import { compareValues, type SqlValue } from '../repository/database.ts'
import { findFirstAfter } from './entry-match.ts'
import { canSelect } from './own-condition.ts'

/** Inclusive limits of the range (`low`, `high`) of a parameter in every match. */
export interface Bounds {
  /** The lowest `low` and the highest `high`, if the resource has one range, no wider than a given width. */
  readonly first?: SqlValue | undefined
  readonly last?: SqlValue | undefined
  /** One `low` at least is not after `to`, and one `high` is not before `from`. */
  readonly to?: SqlValue | undefined
  readonly from?: SqlValue | undefined
}

/** The bounds that all clauses of a parameter have in common; undefined if none of them requires a value. */
export function findBounds(
  clauses: readonly SearchClause[],
  parameter: string,
  width: number,
): Bounds | undefined {
  const own = clauses.filter(clause => clause.parameter === parameter && canSelect(clause))
  if (own.length === 0) return undefined
  const bounds = own.map(clause => boundClause(clause, width))
  const of = (name: keyof Bounds) => bounds.flatMap(it => it[name] ?? []).toSorted(compareValues)
  return { first: of('first').at(-1), last: of('last')[0], to: of('to')[0], from: of('from').at(-1) }
}

/** A match has one of several values: the outermost bounds hold. */
function boundClause(clause: SearchClause, width: number): Bounds {
  const bounds = listBounds(clause, width)
  const of = (name: keyof Bounds) => {
    const limits = bounds.flatMap(it => it[name] ?? []).toSorted(compareValues)
    return limits.length === bounds.length ? limits : []
  }
  return { first: of('first')[0], last: of('last').at(-1), to: of('to').at(-1), from: of('from')[0] }
}

function listBounds(clause: SearchClause, width: number): readonly Bounds[] {
  switch (clause.kind) {
    case 'date':
    case 'number':
    case 'quantity':
      return clause.values.map(value => boundComparison(value, width))
    case 'string':
      return clause.values.map(text => boundText(clause.match, text))
    default:
      return []
  }
}

export function boundText(match: 'starts' | 'contains' | 'exact', text: string): Bounds {
  if (match === 'contains') return {}
  const from = match === 'starts' ? text : normalise(text)
  const to = match === 'starts' ? findFirstAfter(text) : from
  return { first: from, from, to, last: to }
}

/** The bounds of the ranges for which `buildComparison` holds. */
export function boundComparison({ prefix, low, high }: Comparison, width = 0): Bounds {
  switch (prefix) {
    case 'eq':
      return { first: low, last: high, to: high, from: low }
    case 'ap':
      return { first: low - width, last: high + width, to: high, from: low }
    case 'ge':
      return { first: Math.min(low, high - width), from: low }
    case 'gt':
      return { first: high - width, from: high }
    case 'sa':
      return { first: high, from: high }
    case 'le':
      return { to: high, last: Math.max(high, low + width) }
    case 'lt':
      return { to: low, last: low + width }
    case 'eb':
      return { to: low, last: low }
    case 'ne':
      return {}
  }
}
