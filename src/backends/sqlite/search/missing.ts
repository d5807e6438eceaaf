import { findSearchParameter, type MissingClause, type SearchParameterType } from '../../../fhir/index.ts'
import type { QueryContext } from './query-context.ts'
import { name, type Sql, sql } from './sql.ts'

const TABLES = {
  token: 'token',
  reference: 'reference',
  string: 'string',
  date: 'date',
  number: 'quantity',
  quantity: 'quantity',
  uri: 'uri',
} as const satisfies Partial<Record<SearchParameterType, string>>

/** The table that holds the values of a parameter, or undefined where none does. */
export function findTable(type: string, code: string): string | undefined {
  const kind = findSearchParameter(type, code)?.type
  return kind === undefined || kind === 'composite' || kind === 'special' ? undefined : TABLES[kind]
}

/** `:missing`: a parameter without an entry is missing. */
export function buildMissingCondition(
  scene: QueryContext,
  type: string,
  clause: MissingClause,
  row: string,
): Sql {
  // Every resource of ours has an id and a time.
  if (clause.parameter === '_id' || clause.parameter === '_lastUpdated')
    return name(clause.missing ? '0' : '1')
  const table = findTable(type, clause.parameter)
  if (table === undefined) return name('0')
  const nid = scene.names.parameterId(type, clause.parameter)
  const not = name(clause.missing ? 'NOT ' : '')
  return sql`${not}EXISTS (SELECT 1 FROM ${name(table)} e WHERE e.rid = ${name(row)}.rid AND e.nid = ${nid})`
}
