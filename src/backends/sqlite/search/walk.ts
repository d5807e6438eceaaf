import type { SortKey } from '../../../fhir/index.ts'
import type { SqlValue } from '../repository/database.ts'
import type { Names } from '../repository/names.ts'
import type { SearchScope } from './search-scope.ts'
import { findSortColumn, isReversed } from './sort-order.ts'
import { list, name, type Sql, sql } from './sql.ts'

/** A way through all resources of a type, along an index, in steps. */
export interface Walk {
  /** The index, its rows of the type, and the columns in whose order it is read. */
  readonly index: Sql
  readonly where: Sql
  readonly position: readonly string[]
  readonly descending: boolean
  /** Joins the row `r` of the resource, if the index is of another table. */
  readonly join: Sql
  /** Where the first step begins. */
  readonly start: Sql
  readonly rid: string
  /** The value of the first sort key, if it is that of the index. */
  readonly value?: string
  /** A further condition of each row. */
  readonly condition?: Sql
  /** Whether the rows of a step come before those of the next one in the order of the search. */
  readonly isSorted: boolean
  /** The resources that the walk does not pass: those without a value. They come last. */
  readonly missing?: Sql
}

/** The walk along the values of the first sort key; undefined if no index is in that order. */
export function findWalk(
  names: Names,
  type: string,
  sort: readonly SortKey[],
  after: readonly SqlValue[] | undefined,
): Walk | undefined {
  const [key] = sort
  if (!key) return undefined
  const along = walkColumn(names, type, key) ?? walkValues(names, type, key)
  if (!along) return undefined
  // With further keys, resources of the same value must be in the same step.
  const position = sort.length === 1 ? [along.value, along.rid] : [along.value]
  const walk = { ...along, position, descending: key.descending, isSorted: true }
  const start = after && sort.length === 1 ? buildRange(walk, 'after', after) : buildStart(walk, after)
  return { ...walk, start }
}

type Along = Pick<Walk, 'index' | 'where' | 'join' | 'rid' | 'condition' | 'missing'> & {
  readonly value: string
}

const COLUMNS: Readonly<Record<string, readonly [index: string, column: string]>> = {
  _id: ['resource_id', 'r.id'],
  _lastUpdated: ['resource_updated', 'r.updated'],
}

function walkColumn(names: Names, type: string, { parameter }: SortKey): Along | undefined {
  const [index, value] = COLUMNS[parameter] ?? []
  if (index === undefined || value === undefined) return undefined
  return {
    index: name(`resource r INDEXED BY ${index}`),
    where: sql`r.tid = ${names.typeId(type)} AND r.deleted = 0`,
    ...{ join: sql``, rid: 'r.rid', value },
  }
}

/** The indexes that are in the order of a value and then of `rid`. */
const INDEXES: Readonly<Record<string, string>> = {
  'token.code': 'token_code',
  'string.normal': 'string_normal',
  'date.low': 'date_low',
  'date.high': 'date_high',
  'uri.uri': 'uri_uri',
}

function walkValues(names: Names, type: string, key: SortKey): Along | undefined {
  const { table = '', column = '' } = findSortColumn(type, key) ?? {}
  const index = INDEXES[`${table}.${column}`]
  if (index === undefined) return undefined
  const nid = names.parameterId(type, key.parameter)
  // The plus keeps SQLite from reading the values of all resources.
  const entries = sql`FROM ${name(table)} x WHERE x.rid = r.rid AND +x.nid = ${nid}`
  const isBetter = name(`x.${column} ${key.descending ? '>' : '<'} w.${column}`)
  return {
    index: name(`${table} w INDEXED BY ${index}`),
    where: sql`w.nid = ${nid}`,
    join: sql`CROSS JOIN resource r ON r.rid = w.rid`,
    ...{ rid: 'w.rid', value: `w.${column}` },
    condition: sql`NOT EXISTS (SELECT 1 ${entries} AND ${isBetter})`,
    missing: sql`NOT EXISTS (SELECT 1 ${entries})`,
  }
}

/** The walk through all resources of a type, or through those that have no value for the first sort key. */
export function walkRids(
  names: Names,
  type: string,
  sort: readonly SortKey[],
  after: readonly SqlValue[] | undefined,
  missing?: Sql,
): Walk {
  const isSorted = sort.length === (missing ? 1 : 0)
  const walk = {
    index: name('resource r INDEXED BY resource_live'),
    where: sql`r.tid = ${names.typeId(type)} AND r.deleted = 0`,
    ...{ join: sql``, rid: 'r.rid', position: ['r.rid'], descending: isReversed(sort), isSorted },
    ...(missing && { condition: missing }),
  }
  const isWithin = isSorted && after !== undefined && (!missing || after[0] === null)
  return { ...walk, start: isWithin ? buildRange(walk, 'after', after.slice(-1)) : name('1') }
}

type Direction = Pick<Walk, 'position' | 'descending'>

/** The rows of a walk that come after a position, or until it. */
function buildRange(
  { position, descending }: Direction,
  part: 'after' | 'until',
  values: readonly SqlValue[],
): Sql {
  const operator = part === 'after' ? (descending ? '<' : '>') : descending ? '>=' : '<='
  return sql`(${name(position.join(', '))}) ${name(operator)} (${list(values)})`
}

/** With further keys the walk begins with the value of the last row. */
function buildStart(
  { position: [value = ''], descending }: Direction,
  after: readonly SqlValue[] | undefined,
): Sql {
  return after ? sql`${name(value)} ${name(descending ? '<=' : '>=')} ${after[0] ?? null}` : name('1')
}

/** The steps of a walk as conditions. The end of a step is found when the step is requested. */
export function* listSteps(
  { database, step }: Pick<SearchScope, 'database' | 'step'>,
  walk: Walk,
): Generator<Sql, void> {
  const columns = name(walk.position.join(', '))
  const order = name(walk.position.map(it => `${it}${walk.descending ? ' DESC' : ''}`).join(', '))
  let { start } = walk
  for (;;) {
    const { text, values } = sql`SELECT ${columns} FROM ${walk.index} WHERE ${walk.where} AND ${start}
      ORDER BY ${order} LIMIT 1 OFFSET ${step - 1}`
    const [end] = database.rows(text, values)
    if (!end) return yield start
    yield sql`${start} AND ${buildRange(walk, 'until', end)}`
    start = buildRange(walk, 'after', end)
  }
}
