import {
  type EntryClause,
  normalize,
  type QuantityValue,
  type RangeComparison,
  type ReferenceValue,
  type TokenValue,
} from '../../../../fhir/index.ts'
import { toKey } from '../../repository/index-writer.ts'
import { all, any, join, list, name, type Sql, sql } from './sql.ts'

/** The tables of search values. */
export type EntryTable = 'token' | 'string' | 'reference' | 'date' | 'quantity' | 'uri'

/** The rows of an index table for which a clause holds. */
interface EntryMatch {
  readonly table: EntryTable
  readonly where: Sql
}

/** Matches the entries of all resources, or `few`: those of one resource or range, which SQLite reads in full. */
export function buildEntryMatch(
  clause: EntryClause,
  among: 'all' | 'few' = 'all',
  alias: 'e' | 'w' = 'e',
): EntryMatch {
  const { table, where } = matchEntries(clause, among)
  // Texts of the request are bound as values, and never part of the statement.
  return { table, where: { ...where, text: where.text.replaceAll(/\be\./g, `${alias}.`) } }
}

function matchEntries(clause: EntryClause, among: 'all' | 'few'): EntryMatch {
  switch (clause.kind) {
    case 'token':
      return { table: 'token', where: matchTokens(clause.values, among, TOKEN_COLUMNS) }
    case 'text':
      return matchAny('token', clause.values, text => matchPrefix('e.text', text))
    case 'part':
      return matchAny('token', clause.values, text => sql`instr(lower(e.code), ${text}) > 0`)
    case 'string':
      return matchAny('string', clause.values, text => matchString(clause.match, text))
    case 'reference':
      return { table: 'reference', where: matchReferences(clause.values, among) }
    case 'identifier': {
      const where = matchTokens(clause.values, among, IDENTIFIER_COLUMNS)
      return { table: 'reference', where: sql`e.value <> '' AND ${where}` }
    }
    case 'date':
      return matchAny('date', clause.values, matchRange)
    case 'number':
      return matchAny('quantity', clause.values, matchRange)
    case 'quantity':
      return matchAny('quantity', clause.values, matchQuantity)
    case 'uri':
      return matchAny('uri', clause.values, uri => matchUri(clause.match, uri))
  }
}

function matchAny<Value>(
  table: EntryTable,
  values: readonly Value[],
  match: (value: Value) => Sql,
): EntryMatch {
  return { table, where: any(values.map(match)) }
}

interface TokenColumns {
  readonly system: 'e.system'
  readonly code: 'e.code' | 'e.value'
}

const TOKEN_COLUMNS: TokenColumns = { system: 'e.system', code: 'e.code' }
const IDENTIFIER_COLUMNS: TokenColumns = { system: 'e.system', code: 'e.value' }

function matchTokens(requested: readonly TokenValue[], among: 'all' | 'few', columns: TokenColumns): Sql {
  const [first, second] = requested
  if (first && !second) return matchSystemAndCode(first, columns)
  const values = requested.map(({ system, code }) => ({
    system: typeof system === 'string' ? toKey(system) : system,
    code: code === undefined ? undefined : toKey(code),
  }))
  const column = chooseColumn(columns.code, among)
  const codes = values.flatMap(({ code }) => code ?? [])
  const alone = values.flatMap(({ system, code }) => (system === undefined ? (code ?? []) : []))
  const systems = values.flatMap(({ system, code }) => (code === undefined ? (system ?? []) : []))
  const pairs = values.flatMap(({ system, code }) =>
    system === undefined || code === undefined ? [] : sql`(${code}, ${system ?? ''})`,
  )
  const where = any([
    ...(alone.length > 0 ? [sql`${column} IN (${list(alone)})`] : []),
    ...(systems.length > 0 ? [sql`${name(columns.system)} IN (${list(systems)})`] : []),
    ...(pairs.length > 0 ? [sql`(${column}, ${name(columns.system)}) IN (VALUES ${join(pairs, ', ')})`] : []),
  ])
  // The index begins with the code: without this condition SQLite does not use it for pairs.
  const listed = pairs.length > 0 && codes.length === values.length
  return listed ? all([sql`${column} IN (${list(codes)})`, where]) : where
}

/** The plus keeps SQLite from searching the index for each value in turn. */
function chooseColumn(column: string, among: 'all' | 'few'): Sql {
  return name(among === 'few' ? `+${column}` : column)
}

function matchSystemAndCode({ system, code }: TokenValue, columns: TokenColumns): Sql {
  const parts: Sql[] = []
  if (code !== undefined) parts.push(sql`${name(columns.code)} = ${toKey(code)}`)
  if (system !== undefined) parts.push(sql`${name(columns.system)} = ${toKey(system ?? '')}`)
  return all(parts)
}

function matchString(match: 'starts' | 'contains' | 'exact', text: string): Sql {
  switch (match) {
    case 'starts':
      return matchPrefix('e.normal', text)
    case 'contains':
      return sql`instr(e.normal, ${text}) > 0`
    case 'exact':
      return sql`e.normal = ${normalize(text)} AND e.exact = ${toKey(text)}`
  }
}

/** Values of the same types are one list of ids. For `(id AND type) OR …` SQLite would read all references of the parameter. */
function matchReferences(values: readonly ReferenceValue[], among: 'all' | 'few'): Sql {
  const column = chooseColumn('e.id', values.length > 1 ? among : 'all')
  const groups = Map.groupBy(values, value => (value.kind === 'url' ? 'url' : value.types?.join()))
  const conditions = [...groups.values()].map(
    group => sql`${column} IN (${list(group.map(findReferenceId))}) AND ${matchReferenceType(group[0])}`,
  )
  if (conditions.length < 2) return any(conditions)
  return sql`${column} IN (${list(values.map(findReferenceId))}) AND ${any(conditions)}`
}

function findReferenceId(value: ReferenceValue): string {
  return value.kind === 'url' ? toKey(value.url) : value.id
}

function matchReferenceType(value: ReferenceValue | undefined): Sql {
  if (value?.kind !== 'local') return sql`e.type = ''`
  return value.types ? sql`e.type IN (${list(value.types)})` : sql`e.type <> ''`
}

/** The first condition follows from the second one, because `low` is never after `high`: it lets SQLite use an index. */
function matchRange(value: RangeComparison): Sql {
  const comparison = buildComparison(value, 'e.low', 'e.high')
  switch (value.prefix) {
    case 'eq':
    case 'le':
      return sql`e.low <= ${value.high} AND ${comparison}`
    case 'ge':
      return sql`e.high >= ${value.low} AND ${comparison}`
    default:
      return comparison
  }
}

function matchQuantity(value: QuantityValue): Sql {
  const parts = [matchRange(value)]
  if (value.system !== undefined) parts.push(sql`e.system = ${toKey(value.system)}`)
  if (value.code !== undefined)
    parts.push(
      value.system === undefined
        ? sql`(e.code = ${toKey(value.code)} OR e.unit = ${toKey(value.code)})`
        : sql`e.code = ${toKey(value.code)}`,
    )
  return all(parts)
}

function matchUri(match: 'exact' | 'below' | 'above', uri: string): Sql {
  switch (match) {
    case 'exact':
      return sql`e.uri = ${toKey(uri)}`
    case 'below': {
      const under = uri.endsWith('/') ? uri : `${uri}/`
      return sql`(e.uri = ${toKey(uri)} OR ${matchPrefix('e.uri', under)})`
    }
    case 'above':
      return sql`(e.uri = ${toKey(uri)} OR instr(${uri}, iif(substr(e.uri, -1) = '/', e.uri, e.uri || '/')) = 1)`
  }
}

function matchPrefix(column: string, prefix: string): Sql {
  const end = findFirstAfter(prefix)
  return all([
    sql`${name(column)} >= ${prefix}`,
    ...(end === undefined ? [] : [sql`${name(column)} < ${end}`]),
  ])
}

const LAST = 0x10ffff
const LAST_BEFORE_SURROGATES = 0xd7ff
const FIRST_AFTER_SURROGATES = 0xe000

/** The first text after all that begin with the prefix, by code points as SQLite compares; undefined if there is none. */
export function findFirstAfter(prefix: string): string | undefined {
  const points = Array.from(prefix, character => character.codePointAt(0) ?? 0)
  const at = points.findLastIndex(point => point < LAST)
  const point = points[at]
  if (point === undefined) return undefined
  const next = point === LAST_BEFORE_SURROGATES ? FIRST_AFTER_SURROGATES : point + 1
  return String.fromCodePoint(...points.slice(0, at), next)
}

/** Compares a stored range (two columns, both ends inclusive) with the requested one (R4 search.html#prefix). */
export function buildComparison(
  { prefix, low, high }: RangeComparison,
  lowColumn: string,
  highColumn: string,
): Sql {
  const from = name(lowColumn)
  const to = name(highColumn)
  switch (prefix) {
    case 'eq':
      return sql`${from} >= ${low} AND ${to} <= ${high}`
    case 'ne':
      return sql`(${from} < ${low} OR ${to} > ${high})`
    case 'gt':
      return sql`${to} > ${high}`
    case 'ge':
      return sql`(${to} > ${high} OR (${from} >= ${low} AND ${to} <= ${high}))`
    case 'lt':
      return sql`${from} < ${low}`
    case 'le':
      return sql`(${from} < ${low} OR (${from} >= ${low} AND ${to} <= ${high}))`
    case 'sa':
      return sql`${from} > ${high}`
    case 'eb':
      return sql`${to} < ${low}`
    case 'ap':
      return sql`${from} <= ${high} AND ${to} >= ${low}`
  }
}
