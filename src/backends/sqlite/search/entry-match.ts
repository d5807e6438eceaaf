import {
  normalise,
  type QuantityValue,
  type ReferenceValue,
  type SearchClause,
  type TokenValue,
} from '../../../fhir/index.ts'
import { indexText } from '../repository/index-text.ts'
import { buildComparison } from './ranges.ts'
import { all, any, join, list, name, type Sql, sql } from './sql.ts'

/** The rows of one index table that a clause is about. The row is called `e`. */
export interface EntryMatch {
  readonly table: Sql
  readonly where: Sql
}

/** The clauses that look only at the resource itself, by its index entries. */
export type EntryClause = Exclude<SearchClause, { kind: 'chain' | 'has' | 'missing' }>

/** Among the entries of all resources, or among the few of one: those are gone through, whatever is looked for. */
export function buildEntryMatch(clause: EntryClause, among: 'all' | 'few' = 'all'): EntryMatch {
  switch (clause.kind) {
    case 'token':
      return tokens(clause.values, among)
    case 'text':
      return {
        table: name('token'),
        where: any(clause.values.map(text => startsWith('e.text', text))),
      }
    case 'string':
      return {
        table: name('string'),
        where: any(clause.values.map(text => stringIs(clause.match, text))),
      }
    case 'reference':
      return { table: name('reference'), where: any(clause.values.map(referenceIs)) }
    case 'identifier':
      return {
        table: name('reference'),
        where: sql`e.value <> '' AND ${any(clause.values.map(it => systemAndCode(it, 'e.system', 'e.value')))}`,
      }
    case 'date':
      return {
        table: name('date'),
        where: any(clause.values.map(value => buildComparison(value, 'e.low', 'e.high'))),
      }
    case 'number':
      return {
        table: name('quantity'),
        where: any(clause.values.map(value => buildComparison(value, 'e.low', 'e.high'))),
      }
    case 'quantity':
      return { table: name('quantity'), where: any(clause.values.map(quantityIs)) }
    case 'uri':
      return { table: name('uri'), where: any(clause.values.map(uri => uriIs(clause.match, uri))) }
  }
}

function tokens(asked: readonly TokenValue[], among: 'all' | 'few'): EntryMatch {
  const table = name('token')
  const [first, second] = asked
  if (first && !second) return { table, where: systemAndCode(first, 'e.system', 'e.code') }
  const values = asked.map(({ system, code }) => ({
    system: typeof system === 'string' ? indexText(system) : system,
    code: code === undefined ? undefined : indexText(code),
  }))
  // The plus keeps SQLite from looking for each code in turn.
  const column = name(among === 'few' ? '+e.code' : 'e.code')
  const codes = values.flatMap(({ code }) => code ?? [])
  const alone = values.flatMap(({ system, code }) => (system === undefined ? (code ?? []) : []))
  const systems = values.flatMap(({ system, code }) => (code === undefined ? (system ?? []) : []))
  const pairs = values.flatMap(({ system, code }) =>
    system === undefined || code === undefined ? [] : sql`(${code}, ${system ?? ''})`,
  )
  const where = any([
    ...(alone.length > 0 ? [sql`${column} IN (${list(alone)})`] : []),
    ...(systems.length > 0 ? [sql`e.system IN (${list(systems)})`] : []),
    ...(pairs.length > 0 ? [sql`(${column}, e.system) IN (VALUES ${join(pairs, ', ')})`] : []),
  ])
  // The index begins with the code: beside systems SQLite needs to be told that it is one of them.
  const listed = pairs.length > 0 && codes.length === values.length
  return { table, where: listed ? all([sql`${column} IN (${list(codes)})`, where]) : where }
}

function systemAndCode({ system, code }: TokenValue, systemColumn: string, codeColumn: string): Sql {
  const parts: Sql[] = []
  if (code !== undefined) parts.push(sql`${name(codeColumn)} = ${indexText(code)}`)
  if (system !== undefined) parts.push(sql`${name(systemColumn)} = ${indexText(system ?? '')}`)
  return all(parts)
}

function stringIs(match: 'starts' | 'contains' | 'exact', text: string): Sql {
  switch (match) {
    case 'starts':
      return startsWith('e.normal', text)
    case 'contains':
      return sql`instr(e.normal, ${text}) > 0`
    case 'exact':
      return sql`e.normal = ${normalise(text)} AND e.exact = ${indexText(text)}`
  }
}

function referenceIs(value: ReferenceValue): Sql {
  if (value.kind === 'url') return sql`e.id = ${indexText(value.url)} AND e.type = ''`
  return value.types
    ? sql`e.id = ${value.id} AND e.type IN (${list(value.types)})`
    : sql`e.id = ${value.id} AND e.type <> ''`
}

function quantityIs(value: QuantityValue): Sql {
  const parts = [buildComparison(value, 'e.low', 'e.high')]
  if (value.system !== undefined) parts.push(sql`e.system = ${indexText(value.system)}`)
  if (value.code !== undefined)
    parts.push(
      value.system === undefined
        ? sql`(e.code = ${indexText(value.code)} OR e.unit = ${indexText(value.code)})`
        : sql`e.code = ${indexText(value.code)}`,
    )
  return all(parts)
}

function uriIs(match: 'exact' | 'below' | 'above', uri: string): Sql {
  switch (match) {
    case 'exact':
      return sql`e.uri = ${indexText(uri)}`
    case 'below': {
      const under = uri.endsWith('/') ? uri : `${uri}/`
      return sql`(e.uri = ${indexText(uri)} OR ${startsWith('e.uri', under)})`
    }
    case 'above':
      return sql`(e.uri = ${indexText(uri)} OR instr(${uri}, iif(substr(e.uri, -1) = '/', e.uri, e.uri || '/')) = 1)`
  }
}

function startsWith(column: string, prefix: string): Sql {
  const end = firstAfter(prefix)
  return all([
    sql`${name(column)} >= ${prefix}`,
    ...(end === undefined ? [] : [sql`${name(column)} < ${end}`]),
  ])
}

const [LAST, LAST_BEFORE_SURROGATES, FIRST_AFTER_SURROGATES] = [0x10ffff, 0xd7ff, 0xe000]

/** The first text, by code points as SQLite compares, after all that begin with the prefix; undefined where there is none. */
function firstAfter(prefix: string): string | undefined {
  const points = Array.from(prefix, character => character.codePointAt(0) ?? 0)
  const at = points.findLastIndex(point => point < LAST)
  const point = points[at]
  if (point === undefined) return undefined
  const next = point === LAST_BEFORE_SURROGATES ? FIRST_AFTER_SURROGATES : point + 1
  return String.fromCodePoint(...points.slice(0, at), next)
}
