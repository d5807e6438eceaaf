import { isFailure } from '../../../../core/index.ts'
import {
  type EntryClause,
  parseUncounted,
  type RangeComparison,
  type SearchClause,
  type TypeQuery,
} from '../../../../fhir/index.ts'
import { toKey } from '../../repository/index-writer.ts'
import type { Names } from '../../repository/names.ts'
import { buildEntryMatch, type EntryTable, findFirstAfter } from './entry-match.ts'
import { boundComparison, boundText, canSelect, isOfColumn } from './own-condition.ts'
import type { SearchScope, Steps } from './search-scope.ts'
import { join, name, type Sql, sql, union } from './sql.ts'
import { JOIN_RESOURCE, listSteps, type Walk, walkRids } from './walk.ts'

/** The numbers of index rows that are counted at once, and at most, to find the shortest walk. */
const PASSED = { atOnce: 5_000, most: 200_000 } as const
/** The work of counting so many at once, in rows. */
const ROWS_OF_PASS = 250
/** The clauses whose walks are compared. */
const MAX_CHOICES = 8

/**
 * The shortest walks that cover all resources that a search may find: through the matches of one clause, or through all
 * resources of the type. Undefined if all of them have more than `most` rows.
 */
export function* findShortest(
  scope: SearchScope,
  { type, clauses }: TypeQuery,
  most: number,
): Steps<readonly Walk[] | undefined> {
  const choices = [
    ...[...clauses.slice(0, MAX_CHOICES), ...listGranted(scope, type)].flatMap(clause => {
      const walks = walkClause(scope.names, type, clause)
      return walks ? [walks] : []
    }),
    [{ ...walkRids(scope.names, type, [], undefined), isSorted: false }],
  ]
  const candidates = choices.map(walks => ({ walks, passed: passRows(scope, walks) }))
  for (let rows = 0; rows < Math.min(most, PASSED.most); rows += PASSED.atOnce) {
    const first = candidates.find(({ passed }) => passed.next().done)
    if (first) return first.walks
    yield candidates.length * ROWS_OF_PASS
  }
  // The walk through the matches of a clause is seldom longer than that through all resources, and never much longer.
  return most > PASSED.most ? choices[0] : undefined
}

function* passRows(scope: SearchScope, walks: readonly Walk[]): Generator<Sql, void> {
  for (const walk of walks) yield* listSteps({ ...scope, step: PASSED.atOnce }, walk)
}

/** A range of index rows that contains all matches of a clause; undefined if only all rows of its parameter do. */
export function selectRange(names: Names, type: string, clause: SearchClause): Sql | undefined {
  const isRange = canSelect(clause) && !isOfColumn(clause) && listRanges(clause) !== undefined
  const walks = isRange ? walkClause(names, type, clause) : undefined
  return (
    walks &&
    union(
      walks.map(
        ({ index, where, start, end }) =>
          sql`SELECT w.rid FROM ${index} WHERE ${where} AND ${start} AND ${end}`,
      ),
    )
  )
}

/**
 * The matches of several dates, numbers or quantities, each found by its own range: SQLite would compare all rows of the
 * parameter with each value. Undefined if the clause has one value, or another kind.
 */
export function selectOfRanges(names: Names, type: string, clause: EntryClause): Sql | undefined {
  if (clause.kind !== 'date' && clause.kind !== 'number' && clause.kind !== 'quantity') return undefined
  if (clause.values.length < 2 || isOfColumn(clause)) return undefined
  const parts = splitValues(clause).map(it => {
    const range = selectRange(names, type, it)
    return range && sql`${range} AND ${buildEntryMatch(it, 'few', 'w').where}`
  })
  const found = parts.flatMap(part => part ?? [])
  return found.length === parts.length ? union(found) : undefined
}

function splitValues(clause: Extract<EntryClause, { readonly kind: 'date' | 'number' | 'quantity' }>) {
  return clause.kind === 'quantity'
    ? clause.values.map(value => ({ ...clause, values: [value] }))
    : clause.values.map(value => ({ ...clause, values: [value] }))
}

/** The clauses of a granular scope, if it is the only one. */
function listGranted({ filter, baseUrl }: SearchScope, type: string): readonly SearchClause[] {
  const constraints = filter(type)
  if (constraints === 'everything' || constraints.length !== 1) return []
  const clauses = constraints[0]?.query?.map(([parameter, value]) =>
    parseUncounted(type, parameter, value, baseUrl),
  )
  return clauses?.filter(clause => !isFailure(clause)) ?? []
}

/** The walks through the matches of a clause, one for each of its values; undefined if it has no search values. */
function walkClause(names: Names, type: string, clause: SearchClause): readonly Walk[] | undefined {
  if (!canSelect(clause) || isOfColumn(clause)) return undefined
  const { table, where: condition } = buildEntryMatch(clause, 'few', 'w')
  const nid = names.parameterId(type, clause.parameter)
  return (listRanges(clause) ?? [WHOLE[table]]).map(({ index, where = [], position, start, end }) => ({
    index: name(`${table} w INDEXED BY ${index}`),
    where: join([sql`w.nid = ${nid}`, ...where], ' AND '),
    position,
    descending: false,
    join: JOIN_RESOURCE,
    rid: 'w.rid',
    repeats: true,
    isSorted: false,
    start: start ?? name('1'),
    end: end ?? name('1'),
    condition,
    clause,
  }))
}

/** The rows of an index that match a value. */
interface Range extends Partial<Pick<Walk, 'start' | 'end'>>, Pick<Walk, 'position'> {
  readonly index: string
  readonly where?: readonly Sql[]
}

/** All rows of a parameter. */
const WHOLE: Readonly<Record<EntryTable, Range>> = {
  token: { index: 'token_code', position: ['w.code', 'w.rid'] },
  reference: { index: 'reference_id', position: ['w.id', 'w.type', 'w.rid'] },
  string: { index: 'string_normal', position: ['w.normal', 'w.rid'] },
  date: { index: 'date_low', position: ['w.low', 'w.rid'] },
  quantity: { index: 'quantity_low', position: ['w.low', 'w.rid'] },
  uri: { index: 'uri_uri', position: ['w.uri', 'w.rid'] },
}

/** The ranges of the values of a clause; undefined if no index has the rows of a value side by side. */
function listRanges(clause: EntryClause): readonly Range[] | undefined {
  switch (clause.kind) {
    case 'token':
      return requireAll(clause.values.map(({ code }) => findCodeRange(code)))
    case 'reference':
      return clause.values.map(value => findIdRange(value.kind === 'url' ? toKey(value.url) : value.id))
    case 'string':
      return requireAll(clause.values.map(text => findTextRange(clause.match, text)))
    case 'uri':
      return findUriRanges(clause)
    case 'date':
      return requireAll(clause.values.map(value => findComparisonRange('date', value)))
    case 'number':
    case 'quantity':
      return requireAll(clause.values.map(value => findComparisonRange('quantity', value)))
    default:
      return undefined
  }
}

function requireAll(ranges: readonly (Range | undefined)[]): readonly Range[] | undefined {
  const found = ranges.flatMap(range => range ?? [])
  return found.length === ranges.length ? found : undefined
}

function findCodeRange(code: string | undefined): Range | undefined {
  if (code === undefined) return undefined
  return { index: 'token_code', where: [sql`w.code = ${toKey(code)}`], position: ['w.rid'] }
}

function findIdRange(id: string): Range {
  return {
    index: 'reference_id',
    where: [sql`w.id = ${id}`],
    position: ['w.type', 'w.rid'],
  }
}

function findTextRange(match: 'starts' | 'contains' | 'exact', text: string): Range | undefined {
  const { from, to } = boundText(match, text)
  if (from === undefined) return undefined
  return {
    index: 'string_normal',
    position: ['w.normal', 'w.rid'],
    start: sql`w.normal >= ${from}`,
    ...(to !== undefined && { end: sql`w.normal <= ${to}` }),
  }
}

function findUriRanges({
  match,
  values,
}: Extract<SearchClause, { kind: 'uri' }>): readonly Range[] | undefined {
  return match === 'above' ? undefined : values.flatMap(uri => listUriRanges(match, uri))
}

function listUriRanges(match: 'exact' | 'below', uri: string): readonly Range[] {
  const index = { index: 'uri_uri' }
  const same = { ...index, where: [sql`w.uri = ${toKey(uri)}`], position: ['w.rid'] }
  if (match === 'exact') return [same]
  const under = uri.endsWith('/') ? uri : `${uri}/`
  const end = findFirstAfter(under)
  return [
    same,
    {
      ...index,
      position: ['w.uri', 'w.rid'],
      start: sql`w.uri >= ${under}`,
      ...(end !== undefined && { end: sql`w.uri < ${end}` }),
    },
  ]
}

function findComparisonRange(table: 'date' | 'quantity', value: RangeComparison): Range | undefined {
  const { from, to } = boundComparison(value)
  const low = { index: `${table}_low`, position: ['w.low', 'w.rid'] }
  const high = {
    index: `${table}_high`,
    position: ['w.high', 'w.rid'],
    start: sql`w.high >= ${from ?? null}`,
  }
  if (value.prefix === 'eq')
    return { ...low, start: sql`w.low >= ${value.low}`, end: sql`w.low <= ${value.high}` }
  if (from !== undefined) return high
  return to === undefined ? undefined : { ...low, end: sql`w.low <= ${to}` }
}
