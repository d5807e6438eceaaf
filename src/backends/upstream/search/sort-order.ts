import {
  findSearchParameter,
  type IndexEntry,
  indexParameter,
  type Query,
  type Resource,
  type SortKey,
} from '../../../fhir/index.ts'
import type { CheckedResource } from '../paging.ts'

type Value = string | number

/**
 * Compares resources of several searches with the same `_sort`, each of which the upstream has sorted. Resources without a
 * value come last. Servers differ in the order of strings: then the merged order differs from the upstream's, and nothing is
 * lost.
 */
export function createSortOrder(
  sort: Query['sort'],
  baseUrl: string,
): ((a: CheckedResource, b: CheckedResource) => number) | undefined {
  if (sort.length === 0) return undefined
  const known = new WeakMap<CheckedResource, readonly (Value | undefined)[]>()
  const listValues = (item: CheckedResource) => {
    const { resource } = item
    const values = known.get(item) ?? sort.map(key => findValue(resource, key, baseUrl))
    known.set(item, values)
    return values
  }
  return (a, b) => {
    const left = listValues(a)
    const right = listValues(b)
    for (const [at, { descending }] of sort.entries()) {
      const order = compare(left[at], right[at], descending)
      if (order !== 0) return order
    }
    return 0
  }
}

function compare(a: Value | undefined, b: Value | undefined, descending: boolean): number {
  if (a === b) return 0
  if (a === undefined || b === undefined) return a === undefined ? 1 : -1
  return a < b === descending ? 1 : -1
}

/** Of several values the lowest counts in ascending order, the highest in descending order (R4 search.html#sort). */
function findValue(resource: Resource, { parameter: code, descending }: SortKey, baseUrl: string) {
  if (code === '_id') return resource.id
  const parameter = findSearchParameter(resource.resourceType, code)
  const entries = parameter ? indexParameter(resource, parameter, baseUrl) : []
  return entries
    .flatMap(entry => getValue(entry, descending) ?? [])
    .reduce<Value | undefined>(
      (best, it) => (best === undefined || compare(it, best, descending) < 0 ? it : best),
      undefined,
    )
}

function getValue(entry: IndexEntry, descending: boolean): Value | undefined {
  switch (entry.kind) {
    case 'token':
      return entry.code
    case 'reference':
      return entry.id
    case 'string':
      return entry.normal
    case 'uri':
      return entry.uri
    case 'date':
    case 'number':
    case 'quantity':
      return descending ? entry.high : entry.low
  }
}
