import { limits, type Query } from '../../../fhir/index.ts'
import type { SqlValue } from '../repository/database.ts'
import { countRows, findRows, type Row, selectRows } from './find-rows.ts'
import { countUpTo, type SearchScope } from './search-scope.ts'
import { isBounded } from './select-current.ts'
import { compareRows } from './sort-order.ts'
import { join } from './sql.ts'
import type { Steps } from './steps.ts'

/** A resource that a search found. */
export interface Hit {
  readonly rid: number
  readonly type: string
  readonly id: string
  readonly content: string
}

export interface FoundRows {
  readonly hits: readonly Hit[]
  /** Where the next page begins, if there is one. */
  readonly next: readonly SqlValue[] | undefined
}

/** A page of the resources that a query finds, in its order, within the caller's access. */
export function* runQuery(
  scope: SearchScope,
  { types, sort, count }: Query,
  after: readonly SqlValue[] | undefined,
  mostCharacters = limits.PAGE_CHARACTERS,
): Steps<FoundRows> {
  if (count === 0) return { hits: [], next: undefined }
  let found: readonly Row[] = []
  for (const { type, clauses } of types) {
    const rows = yield* findRows(scope, { type, clauses, sort, after, limit: count + 1 })
    found = found.length === 0 ? rows : [...found, ...rows].toSorted(compareRows(sort)).slice(0, count + 1)
  }
  const hits = loadPage(
    scope,
    found.slice(0, count).map(([rid]) => Number(rid)),
    mostCharacters,
  )
  const last = found[hits.length - 1]
  return { hits, next: found.length > hits.length && last ? [...last.slice(1), last[0] ?? null] : undefined }
}

/** As many of the resources as fit on a page, but at least one. */
function loadPage(scope: SearchScope, rids: readonly number[], mostCharacters: number): readonly Hit[] {
  const hits: Hit[] = []
  let charactersLeft = mostCharacters
  for (const rid of rids) {
    const hit = loadHit(scope, rid)
    charactersLeft -= hit.content.length
    if (charactersLeft < 0 && hits.length > 0) break
    hits.push(hit)
  }
  return hits
}

export function loadHit({ database, names }: Pick<SearchScope, 'database' | 'names'>, rid: number): Hit {
  const [row] = database.rows('SELECT tid, id, content FROM resource WHERE rid = ?', [rid])
  const [tid, id, content] = row ?? []
  return { rid, type: names.typeOf(Number(tid)), id: String(id), content: String(content) }
}

/** The `rid`s of all resources that a query finds in a compartment. */
export function findRids(scope: SearchScope, { types }: Query): readonly number[] {
  return types.flatMap(({ type, clauses }) => {
    const { text, values } = selectRows(scope, type, clauses)
    return scope.database.rows(text, values).map(([rid]) => Number(rid))
  })
}

/** The number of resources that a query finds. */
export function* countQuery(scope: SearchScope, { types }: Query): Steps<number> {
  let count = 0
  for (const { type, clauses } of types) count += yield* countRows(scope, type, clauses)
  return count
}

/** The number of resources that a query finds; undefined if there are more than the limit, or counting is not cheap. */
export function countCheaply(scope: SearchScope, { types }: Query, limit: number): number | undefined {
  const isCheap = types.every(
    ({ type, clauses }) => scope.compartment !== undefined || isBounded(scope, type, clauses),
  )
  if (!isCheap) return undefined
  if (types.length === 0) return 0
  const counted = join(
    types.map(({ type, clauses }) => selectRows(scope, type, clauses)),
    ' UNION ALL ',
  )
  const count = countUpTo(scope.database, counted, limit + 1)
  return count > limit ? undefined : count
}
