import { MOST_SCOPE_PARAMETERS } from './scope-limits.ts'

type Query = readonly (readonly [name: string, value: string])[]

interface Keys {
  readonly own: string
  readonly implied: readonly string[]
}

// A query never changes, and that of a scope is asked about for one type after another.
const known = new WeakMap<Query, Keys>()

/** A text that two queries have in common only if they restrict to the same. */
export function queryKey(query: Query): string {
  return keysOf(query).own
}

/**
 * The keys of every restriction that a query implies: one for each subset of its search parameters, itself included.
 * What is restricted by any of them contains what is restricted by the query, so a wider restriction is found by lookup
 * instead of by comparison with all others. A query that is longer than that of any scope implies itself only.
 */
export function impliedKeys(query: Query): readonly string[] {
  return keysOf(query).implied
}

function keysOf(query: Query): Keys {
  const found = known.get(query)
  if (found) return found
  const items = [...new Set(query.map(pair => JSON.stringify(pair)))].sort()
  const own = items.join()
  const keys = { own, implied: items.length > MOST_SCOPE_PARAMETERS ? [own] : subsetsOf(items) }
  known.set(query, keys)
  return keys
}

function subsetsOf(items: readonly string[]): readonly string[] {
  return items
    .reduce<readonly (readonly string[])[]>(
      (known, item) => known.flatMap(some => [some, [...some, item]]),
      [[]],
    )
    .map(some => some.join())
}
