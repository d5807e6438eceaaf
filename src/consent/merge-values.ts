import type { Limit } from './reach.ts'

type Query = NonNullable<Limit['query']>

/**
 * Limits that differ only in the value of one search parameter, as one limit to any of those values: `category=a` and
 * `category=b` are `category=a,b` (R4 search.html#combining). A token may hold a hundred such scopes of one type, and
 * each limit that is left costs a lookup for every resource.
 */
export function mergeValues(limits: readonly Limit[]): readonly Limit[] {
  const names = new Set(limits.flatMap(({ query = [] }) => query.map(([name]) => name)))
  return [...names].filter(takesAlternatives).reduce(mergeBy, limits)
}

// The values of `:not` exclude each other's matches, and `:missing` takes one value.
function takesAlternatives(name: string): boolean {
  return !/:(?:not|missing)\b/.test(name)
}

function mergeBy(limits: readonly Limit[], name: string): readonly Limit[] {
  const panels = new Map(limits.map(({ panel }, at) => [panel, at]))
  const alike = Map.groupBy(limits, (limit, at) => {
    const { panel, query = [], ...subject } = limit
    const others = query.filter(([other]) => other !== name)
    // A backslash at the end of a value would escape the comma.
    const isMergeable =
      others.length === query.length - 1 && valuesOf(query, name).every(it => !it.endsWith('\\'))
    return isMergeable
      ? JSON.stringify([subject, panels.get(panel), others.map(pair => JSON.stringify(pair)).sort()])
      : at
  })
  return [...alike.values()].flatMap(group => mergeAlike(group, name))
}

function mergeAlike(group: readonly Limit[], name: string): readonly Limit[] {
  const [first] = group
  if (!first?.query || group.length === 1) return group
  const values = new Set(group.flatMap(({ query = [] }) => valuesOf(query, name)))
  const query: Query = first.query.map(pair => (pair[0] === name ? [name, [...values].join(',')] : pair))
  return [{ ...first, query }]
}

function valuesOf(query: Query, name: string): readonly string[] {
  return query.flatMap(([other, value]) => (other === name ? [value] : []))
}
