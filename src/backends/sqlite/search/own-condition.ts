import {
  type Comparison,
  type DateClause,
  findSearchParameter,
  type MissingClause,
  type SearchClause,
  type SearchParameterType,
  type TokenClause,
} from '../../../fhir/index.ts'
import type { Names } from '../repository/names.ts'
import { buildComparison, buildEntryMatch, type EntryClause } from './entry-match.ts'
import { any, FALSE, list, name, type Sql, sql } from './sql.ts'

/** The clauses that depend on one resource alone. */
export type OwnClause = Exclude<SearchClause, { kind: 'chain' | 'has' }>

/** Whether a clause holds for the resource of `type` in the row `row` of the table `resource`. */
export function buildOwnCondition(
  names: Names,
  type: string,
  clause: OwnClause,
  row: string,
  rid = `${row}.rid`,
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
  // The entries of one code are few pages of the index, those of many resources are many pages of the table.
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

export function isColumn(parameter: string): boolean {
  return parameter === '_id' || parameter === '_lastUpdated'
}

/** `_id` and `_lastUpdated` are columns of the resource. */
function buildColumnCondition(clause: EntryClause, row: string): Sql | undefined {
  if (clause.kind === 'token' && clause.parameter === '_id') return buildIdCondition(clause, row)
  if (clause.kind === 'date' && clause.parameter === '_lastUpdated') return buildUpdatedCondition(clause, row)
  return undefined
}

function buildIdCondition(clause: TokenClause, row: string): Sql {
  const ids = clause.values.flatMap(({ system, code }) => (system || code === undefined ? [] : [code]))
  return sql`${name(row)}.id ${name(clause.negated ? 'NOT ' : '')}IN (${list(ids)})`
}

function buildUpdatedCondition(clause: DateClause, row: string): Sql {
  return any(clause.values.map(value => compareTime(value, `${row}.updated`)))
}

/** Compares a time as `buildComparison` compares a range, without `OR`, so that SQLite uses the index. */
function compareTime(value: Comparison, column: string): Sql {
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
  if (clause.parameter === '_id' || clause.parameter === '_lastUpdated')
    return clause.missing ? FALSE : name('1')
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
