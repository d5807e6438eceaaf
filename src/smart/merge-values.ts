import type { Constraint } from './access-filter.ts'

type Query = NonNullable<Constraint['query']>

/**
 * Limits that differ only in the value of one search parameter, as one limit to any of those values: `category=a` and
 * `category=b` are `category=a,b` (R4 search.html#combining). A token may hold a hundred such scopes of one type, and
 * each limit that is left costs a lookup for every resource.
 */
export function mergeValues(constraints: readonly Constraint[]): readonly Constraint[] {
  const names = new Set(constraints.flatMap(({ query = [] }) => query.map(([name]) => name)))
  return [...names].filter(takesAlternatives).reduce(mergeBy, constraints)
}

// The values of `:not` exclude each other's matches, and `:missing` takes one value.
function takesAlternatives(name: string): boolean {
  return !/:(?:not|missing)\b/.test(name)
}

function mergeBy(constraints: readonly Constraint[], name: string): readonly Constraint[] {
  const panels = new Map(constraints.map(({ panel }, at) => [panel, at]))
  const alike = Map.groupBy(constraints, (constraint, at) => {
    const { panel, query = [], ...subject } = constraint
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

function mergeAlike(group: readonly Constraint[], name: string): readonly Constraint[] {
  const [first] = group
  if (!first?.query || group.length === 1) return group
  const values = new Set(group.flatMap(({ query = [] }) => valuesOf(query, name)))
  const query: Query = first.query.map(pair => (pair[0] === name ? [name, [...values].join(',')] : pair))
  return [{ ...first, query }]
}

function valuesOf(query: Query, name: string): readonly string[] {
  return query.flatMap(([other, value]) => (other === name ? [value] : []))
}
