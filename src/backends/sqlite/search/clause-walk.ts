import { type Comparison, parseSearch, type SearchClause } from '../../../fhir/index.ts'
import { toKey } from '../repository/index-writer.ts'
import type { Names } from '../repository/names.ts'
import { boundComparison, boundText } from './bounds.ts'
import type { SearchScope } from './search-scope.ts'
import { countUpTo } from './search-scope.ts'
import { join, name, type Sql, sql } from './sql.ts'
import { JOIN_RESOURCE, type Walk, walkRids } from './walk.ts'

/** Rows of an index that are counted to find the shortest walk. Counting them keeps the event loop busy. */
const COUNTED_ROWS = 200_000

/**
 * The shortest walks that pass all resources that a search may find: through the matches of one clause, or through all
 * resources of the type. Undefined if all have more than `most` rows; a higher limit than can be counted is none.
 */
export function findShortest(
  scope: SearchScope,
  type: string,
  clauses: readonly SearchClause[],
  most: number,
): readonly Walk[] | undefined {
  const ofClauses = [...clauses, ...listGranted(scope, type)].flatMap(clause => {
    const walks = walkClause(scope.names, type, clause)
    return walks ? [walks] : []
  })
  const whole: readonly Walk[] = [{ ...walkRids(scope.names, type, [], undefined), isSorted: false }]
  let shortest = most > COUNTED_ROWS ? whole : undefined
  let least = Math.min(most, COUNTED_ROWS) + 1
  for (const walks of [...ofClauses, whole]) {
    const rows = countUpTo(scope.database, join(walks.map(selectWalked), ' UNION ALL '), least)
    if (rows < least) [shortest, least] = [walks, rows]
  }
  return shortest
}

function selectWalked({ index, where, start, end }: Walk): Sql {
  return sql`SELECT 1 FROM ${index} WHERE ${where} AND ${start} AND ${end}`
}

/** The clauses of a granular scope, if it is the only one. */
function listGranted({ filter, baseUrl }: SearchScope, type: string): readonly SearchClause[] {
  const constraints = filter(type)
  if (constraints === 'everything' || constraints.length !== 1) return []
  const clauses = constraints[0]?.query?.map(([parameter, value]) =>
    parseSearch(type, parameter, value, baseUrl),
  )
  return clauses?.filter(clause => clause.kind !== 'error') ?? []
}

/** The walks through the matches of a clause, one for each of its values; undefined if no index finds them. */
function walkClause(names: Names, type: string, clause: SearchClause): readonly Walk[] | undefined {
  const ranges = listRanges(clause)
  if (!ranges) return undefined
  const nid = names.parameterId(type, clause.parameter)
  return ranges.map(({ table, index, where = [], position, start, end }) => ({
    index: name(`${table} w INDEXED BY ${index}`),
    where: join([sql`w.nid = ${nid}`, ...where], ' AND '),
    ...{ position, descending: false, join: JOIN_RESOURCE, rid: 'w.rid', repeats: true, isSorted: false },
    ...{ start: start ?? name('1'), end: end ?? name('1') },
  }))
}

/** The rows of an index that match a value. */
interface Range extends Partial<Pick<Walk, 'start' | 'end'>>, Pick<Walk, 'position'> {
  readonly table: string
  readonly index: string
  readonly where?: readonly Sql[]
}

function listRanges(clause: SearchClause): readonly Range[] | undefined {
  if (clause.parameter === '_id' || clause.parameter === '_lastUpdated') return undefined
  switch (clause.kind) {
    case 'token':
      return clause.negated ? undefined : allOf(clause.values.map(({ code }) => rangeOfCode(code)))
    case 'reference':
      return clause.values.map(value => rangeOfId(value.kind === 'url' ? toKey(value.url) : value.id))
    case 'string':
      return allOf(clause.values.map(text => rangeOfText(clause.match, text)))
    case 'date':
      return allOf(clause.values.map(value => rangeOfComparison('date', value)))
    case 'number':
    case 'quantity':
      return allOf(clause.values.map(value => rangeOfComparison('quantity', value)))
    default:
      return undefined
  }
}

function allOf(ranges: readonly (Range | undefined)[]): readonly Range[] | undefined {
  const found = ranges.flatMap(range => range ?? [])
  return found.length === ranges.length ? found : undefined
}

function rangeOfCode(code: string | undefined): Range | undefined {
  if (code === undefined) return undefined
  return { table: 'token', index: 'token_code', where: [sql`w.code = ${toKey(code)}`], position: ['w.rid'] }
}

function rangeOfId(id: string): Range {
  return {
    table: 'reference',
    index: 'reference_id',
    where: [sql`w.id = ${id}`],
    position: ['w.type', 'w.rid'],
  }
}

function rangeOfText(match: 'starts' | 'contains' | 'exact', text: string): Range | undefined {
  const { from, to } = boundText(match, text)
  if (from === undefined) return undefined
  return {
    ...{
      table: 'string',
      index: 'string_normal',
      position: ['w.normal', 'w.rid'],
      start: sql`w.normal >= ${from}`,
    },
    ...(to !== undefined && { end: sql`w.normal <= ${to}` }),
  }
}

function rangeOfComparison(table: 'date' | 'quantity', value: Comparison): Range | undefined {
  const { from, to } = boundComparison(value)
  const low = { table, index: `${table}_low`, position: ['w.low', 'w.rid'] }
  const high = {
    table,
    index: `${table}_high`,
    position: ['w.high', 'w.rid'],
    start: sql`w.high >= ${from ?? null}`,
  }
  if (value.prefix === 'eq')
    return { ...low, start: sql`w.low >= ${value.low}`, end: sql`w.low <= ${value.high}` }
  if (from !== undefined) return high
  return to === undefined ? undefined : { ...low, end: sql`w.low <= ${to}` }
}
