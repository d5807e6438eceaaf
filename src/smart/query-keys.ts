import { MOST_SCOPE_PARAMETERS } from './scope.ts'

type Query = readonly (readonly [name: string, value: string])[]

interface Keys {
  readonly own: string
  readonly implied: readonly string[]
}

// A query never changes, and that of a scope is needed for many types.
const known = new WeakMap<Query, Keys>()

/** A text that is the same for queries with the same search parameters. */
export function getQueryKey(query: Query): string {
  return getKeys(query).own
}

/**
 * The keys of every query that this one implies: one for each subset of its search parameters, including all of them. A
 * wider constraint is thus found by lookup instead of by comparison with all others. A query that is longer than that of
 * any scope implies only itself.
 */
export function getImpliedKeys(query: Query): readonly string[] {
  return getKeys(query).implied
}

function getKeys(query: Query): Keys {
  const found = known.get(query)
  if (found) return found
  const items = [...new Set(query.map(pair => JSON.stringify(pair)))].sort()
  const own = items.join()
  const keys = { own, implied: items.length > MOST_SCOPE_PARAMETERS ? [own] : listSubsets(items) }
  known.set(query, keys)
  return keys
}

function listSubsets(items: readonly string[]): readonly string[] {
  return items
    .reduce<readonly (readonly string[])[]>(
      (known, item) => known.flatMap(some => [some, [...some, item]]),
      [[]],
    )
    .map(some => some.join())
}
