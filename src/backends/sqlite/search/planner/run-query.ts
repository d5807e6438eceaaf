import { limits, type Query, type TypeQuery } from '../../../../fhir/index.ts'
import type { SqlValue } from '../../repository/database.ts'
import { countRows, divideFound } from './count-rows.ts'
import { confirmRows, findRows, type SortedRow } from './find-rows.ts'
import { resolveLinks } from './resolve-links.ts'
import { fitStep, noticePauses, type SearchScope, type Steps } from './search-scope.ts'
import { isBounded } from './select-current.ts'
import { compareRows } from './sort-order.ts'

/** A resource that a search found. */
export interface Hit {
  readonly rid: number
  readonly type: string
  readonly id: string
  readonly version: number
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
  query: Query,
  after: readonly SqlValue[] | undefined,
  mostCharacters = limits.PAGE_CHARACTERS,
): Steps<FoundRows> {
  const { count } = query
  if (count === 0) return { hits: [], next: undefined }
  const types = yield* resolveLinks(scope, query.types)
  const { result: found, hasPaused } = yield* noticePauses(findFirst(scope, { ...query, types }, after))
  const all = found.slice(0, count)
  const { hits, last } = yield* loadPage(scope, types, all, hasPaused, mostCharacters)
  const hasNext = found.length > count || last !== all.at(-1)
  return { hits, next: hasNext && last ? [...last.slice(1), last[0] ?? null] : undefined }
}

/** The rows of a page, and the one after it. */
function* findFirst(
  scope: SearchScope,
  { types, sort, count }: Query,
  after: readonly SqlValue[] | undefined,
): Steps<readonly SortedRow[]> {
  const limit = count + 1
  let found: readonly SortedRow[] = []
  for (const query of types) {
    const rows = yield* findRows(scope, { ...query, sort, after, limit })
    found = found.length === 0 ? rows : [...found, ...rows].toSorted(compareRows(sort)).slice(0, limit)
  }
  return found
}

/**
 * As many of the resources as fit on a page, but at least one, and the last row of the page. After a pause each is confirmed
 * in the step in which it is loaded.
 */
function* loadPage(
  scope: SearchScope,
  types: readonly TypeQuery[],
  all: readonly SortedRow[],
  hasPaused: boolean,
  mostCharacters: number,
): Steps<{ readonly hits: readonly Hit[]; readonly last: SortedRow | undefined }> {
  const fitted = types.map(query => fitStep(scope, query))
  const step = Math.min(scope.step, ...fitted.map(it => it.step))
  const stepWork = Math.max(...fitted.map(it => it.stepWork))
  const hits: Hit[] = []
  // A resource whose position has changed during a pause may be in two rows.
  const known = new Set<number>()
  let charactersLeft = mostCharacters
  let last: SortedRow | undefined
  for (let at = 0; at < all.length; at += hasPaused ? step : all.length) {
    if (at > 0) yield stepWork
    const some = hasPaused ? all.slice(at, at + step) : all
    const confirmed = new Set(hasPaused ? confirmRows(scope, types, some) : some)
    for (const row of some) {
      const rid = Number(row[0])
      if (confirmed.has(row) && !known.has(rid)) {
        known.add(rid)
        const hit = loadHit(scope, rid)
        charactersLeft -= hit.content.length
        if (charactersLeft < 0 && hits.length > 0) return { hits, last }
        hits.push(hit)
      }
      last = row
    }
  }
  return { hits, last }
}

export function loadHit({ database, names }: Pick<SearchScope, 'database' | 'names'>, rid: number): Hit {
  const [row] = database.rows('SELECT tid, id, version, content FROM resource WHERE rid = ?', [rid])
  const [tid, id, version, content] = row ?? []
  return {
    rid,
    type: names.typeOf(Number(tid)),
    id: String(id),
    version: Number(version),
    content: String(content),
  }
}

/** The `rid`s of all resources that a query finds in a compartment. */
export function* findRids(scope: SearchScope, { types }: Query): Steps<readonly number[]> {
  const rids: number[] = []
  for (const query of yield* resolveLinks(scope, types))
    for (const { text, values } of yield* divideFound(scope, query)) {
      for (const [rid] of scope.database.rows(text, values)) rids.push(Number(rid))
      if (rids.length > scope.step) yield fitStep(scope, query).stepWork
    }
  return rids
}

/** The number of resources that a query finds, or any number beyond `most`. */
export function* countQuery(
  scope: SearchScope,
  { types }: Query,
  most = Number.POSITIVE_INFINITY,
): Steps<number> {
  let count = 0
  for (const query of yield* resolveLinks(scope, types)) {
    count += yield* countRows(scope, query, most - count)
    if (count > most) break
  }
  return count
}

/** The number of resources that a query finds; undefined if there are more than the limit, or counting is not cheap. */
export function* countCheaply(scope: SearchScope, query: Query, limit: number): Steps<number | undefined> {
  const isCheap = query.types.every(it => scope.compartment !== undefined || isBounded(scope, it))
  if (!isCheap) return undefined
  const count = yield* countQuery(scope, query, limit)
  return count > limit ? undefined : count
}
