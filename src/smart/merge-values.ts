import type { Constraint } from './access-filter.ts'

type Query = NonNullable<Constraint['query']>

/**
 * Merges constraints that differ only in the value of one search parameter: `category=a` and `category=b` become
 * `category=a,b` (R4 search.html#combining). A token may have a hundred such scopes of one type, and each constraint costs
 * a lookup for every resource.
 */
export function mergeValues(constraints: readonly Constraint[]): readonly Constraint[] {
  const merged: (Constraint | undefined)[] = [...constraints]
  const panels = new Map(constraints.map(({ panel }, at) => [panel, at]))
  for (const [name, places] of groupByName(constraints)) {
    if (places.length < 2 || !takesAlternatives(name)) continue
    const alike = Map.groupBy(places, at => {
      const constraint = merged[at]
      return (constraint && createKeyWithout(name, constraint, panels.get(constraint.panel))) ?? at
    })
    for (const [first = 0, ...others] of alike.values()) {
      const constraint = merged[first]
      if (!constraint || others.length === 0) continue
      const rest = others.flatMap(at => merged[at] ?? [])
      merged[first] = mergeAlike(constraint, rest, name)
      for (const at of others) merged[at] = undefined
    }
  }
  return merged.filter(constraint => constraint !== undefined)
}

/** The constraints that name each search parameter: only these are compared. */
function groupByName(constraints: readonly Constraint[]): ReadonlyMap<string, readonly number[]> {
  const places = new Map<string, number[]>()
  for (const [at, { query = [] }] of constraints.entries())
    for (const name of new Set(query.map(([it]) => it))) {
      const known = places.get(name) ?? []
      places.set(name, known)
      known.push(at)
    }
  return places
}

// The values of `:not` exclude each other's matches, and `:missing` takes one value.
function takesAlternatives(name: string): boolean {
  return !/:(?:not|missing)\b/.test(name)
}

/** Identifies a constraint without one search parameter; undefined if its values cannot be merged. */
function createKeyWithout(
  name: string,
  { panel: _, query = [], ...subject }: Constraint,
  panel: number | undefined,
): string | undefined {
  const [value, ...more] = listValues(query, name)
  // A backslash at the end of a value would escape the comma.
  if (more.length > 0 || value?.endsWith('\\')) return undefined
  const others = query.filter(([other]) => other !== name)
  return JSON.stringify([subject, panel, others.map(pair => JSON.stringify(pair)).sort()])
}

function mergeAlike(first: Constraint, others: readonly Constraint[], name: string): Constraint {
  const values = new Set([first, ...others].flatMap(({ query = [] }) => listValues(query, name)))
  const query = (first.query ?? []).map(pair =>
    pair[0] === name ? ([name, [...values].join(',')] as const) : pair,
  )
  return { ...first, query }
}

function listValues(query: Query, name: string): readonly string[] {
  return query.flatMap(([other, value]) => (other === name ? [value] : []))
}
