import {
  type DateClause,
  type EntryClause,
  findSearchParameter,
  type MissingClause,
  normalize,
  type RangeComparison,
  type SearchClause,
  type SearchParameterType,
  type TokenClause,
} from '../../../../fhir/index.ts'
import { compareValues, type SqlValue } from '../../repository/database.ts'
import type { Names } from '../../repository/names.ts'
import { buildComparison, buildEntryMatch, findFirstAfter } from './entry-match.ts'
import { any, FALSE, list, name, type Sql, sql, union } from './sql.ts'

/** The clauses that depend on one resource alone. */
type OwnClause = Exclude<SearchClause, { kind: 'chain' | 'has' }>

/** Whether a clause holds for the resource of `type` in the row `row` of the table `resource`. */
export function buildOwnCondition(
  names: Names,
  type: string,
  clause: OwnClause,
  row: string,
  rid: string,
): Sql {
  if (clause.kind === 'missing') return buildMissingCondition(names, type, clause, rid)
  return buildColumnCondition(clause, row) ?? buildEntryCondition(names, type, clause, rid)
}

/** Whether the index finds the resources for which a clause holds. */
export function canSelect(clause: SearchClause): clause is EntryClause {
  const { kind } = clause
  return kind !== 'missing' && kind !== 'chain' && kind !== 'has' && !(kind === 'token' && clause.negated)
}

/** The `rid`s of the current resources for which a clause holds, as a subquery. */
export function selectByEntries(names: Names, type: string, clause: EntryClause): Sql {
  // SQLite reads all values of the parameter for a condition on several texts or times.
  if (clause.kind === 'string' && clause.values.length > 1)
    return union(clause.values.map(value => selectByEntries(names, type, { ...clause, values: [value] })))
  if (isOfTime(clause) && clause.values.length > 1)
    return union(clause.values.map(value => selectByEntries(names, type, { ...clause, values: [value] })))
  const column = buildColumnCondition(clause, 'o')
  if (column)
    return sql`SELECT o.rid FROM resource o WHERE o.tid = ${names.typeId(type)} AND o.deleted = 0 AND ${column}`
  const { table, where } = buildEntryMatch(clause)
  return sql`SELECT e.rid FROM ${name(table)} e WHERE e.nid = ${names.parameterId(type, clause.parameter)} AND ${where}`
}

function buildEntryCondition(names: Names, type: string, clause: EntryClause, rid: string): Sql {
  const { table, where } = buildEntryMatch(clause, 'few')
  const nid = names.parameterId(type, clause.parameter)
  // The plus keeps SQLite from reading the resource before.
  const not = name(clause.kind === 'token' && clause.negated ? 'NOT ' : '+')
  // The entries of one code are on few pages of the index; those of many resources are on many pages of the table.
  if (isOfOneCode(clause))
    return sql`${not}EXISTS (SELECT 1 FROM token e INDEXED BY token_code WHERE e.nid = ${nid} AND ${where} AND e.rid = ${name(rid)})`
  // The plus keeps SQLite from reading the values of all resources.
  return sql`${not}EXISTS (SELECT 1 FROM ${name(table)} e WHERE e.rid = ${name(rid)} AND +e.nid = ${nid} AND ${where})`
}

function isOfOneCode(clause: EntryClause): boolean {
  return clause.kind === 'token' && clause.values.length === 1 && clause.values[0]?.code !== undefined
}

/** Whether a clause is evaluated on the row of the resource, not on its search values. */
export function isOfColumn({ parameter }: EntryClause): boolean {
  return isColumn(parameter)
}

/** Whether a clause is one of `_lastUpdated`. */
export function isOfTime(clause: EntryClause): clause is DateClause {
  return clause.kind === 'date' && isColumn(clause.parameter)
}

export function isColumn(parameter: string): boolean {
  return parameter === '_id' || parameter === '_lastUpdated'
}

/** `_id` and `_lastUpdated` are columns of the resource. */
function buildColumnCondition(clause: EntryClause, row: string): Sql | undefined {
  if (clause.kind === 'token' && clause.parameter === '_id') return buildIdCondition(clause, row)
  if (clause.kind === 'date' && clause.parameter === '_lastUpdated') return buildUpdatedCondition(clause, row)
  return undefined
}

const MAX_LISTED = 500

function buildIdCondition(clause: TokenClause, row: string): Sql {
  const ids = clause.values.flatMap(({ system, code }) => (system || code === undefined ? [] : [code]))
  // SQLite accepts a limited number of values.
  const listed =
    ids.length > MAX_LISTED ? sql`SELECT value FROM json_each(${JSON.stringify(ids)})` : list(ids)
  return sql`${name(row)}.id ${name(clause.negated ? 'NOT ' : '')}IN (${listed})`
}

function buildUpdatedCondition(clause: DateClause, row: string): Sql {
  return any(clause.values.map(value => compareTime(value, `${row}.updated`)))
}

/** Compares a time as `buildComparison` compares a range, without `OR`, so that SQLite uses the index. */
function compareTime(value: RangeComparison, column: string): Sql {
  switch (value.prefix) {
    case 'ge':
      return sql`${name(column)} >= ${value.low}`
    case 'le':
      return sql`${name(column)} <= ${value.high}`
    default:
      return buildComparison(value, column, column)
  }
}

/** `:missing`: a parameter without an entry is missing. */
function buildMissingCondition(names: Names, type: string, clause: MissingClause, rid: string): Sql {
  // Every stored resource has an id and a time.
  if (isColumn(clause.parameter)) return clause.missing ? FALSE : name('1')
  const table = findTable(type, clause.parameter)
  if (table === undefined) return FALSE
  const nid = names.parameterId(type, clause.parameter)
  const not = name(clause.missing ? 'NOT ' : '')
  return sql`${not}EXISTS (SELECT 1 FROM ${name(table)} e WHERE e.rid = ${name(rid)} AND +e.nid = ${nid})`
}

const TABLES = {
  token: 'token',
  reference: 'reference',
  string: 'string',
  date: 'date',
  number: 'quantity',
  quantity: 'quantity',
  uri: 'uri',
} as const satisfies Partial<Record<SearchParameterType, string>>

/** The table that holds the values of a parameter; undefined for parameters without one. */
export function findTable(type: string, code: string): string | undefined {
  const kind = findSearchParameter(type, code)?.type
  return kind === undefined || kind === 'composite' || kind === 'special' ? undefined : TABLES[kind]
}

/** Inclusive limits of the range (`low`, `high`) of a parameter in every match. */
export interface Bounds {
  /** The lowest `low` and the highest `high`, if the resource has one range, no wider than a given width. */
  readonly first?: SqlValue | undefined
  readonly last?: SqlValue | undefined
  /** At least one `low` is not after `to`, and one `high` is not before `from`. */
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
  const from = match === 'starts' ? text : normalize(text)
  const to = match === 'starts' ? findFirstAfter(text) : from
  return { first: from, from, to, last: to }
}

/** The bounds of the ranges for which `buildComparison` holds. */
export function boundComparison({ prefix, low, high }: RangeComparison, width = 0): Bounds {
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
