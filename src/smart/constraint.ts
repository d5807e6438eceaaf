import type { AccessFilter, Constraint } from './access-filter.ts'
import type { Panel } from './policy/panel.ts'
import { impliedKeys, queryKey } from './query-keys.ts'

/** The limit, and all of these search parameters match too. */
export function narrow(constraint: Constraint, query: NonNullable<Constraint['query']>): Constraint {
  if (query.length === 0) return constraint
  return { ...constraint, query: constraint.query === undefined ? query : [...constraint.query, ...query] }
}

/** Whether a limit leaves nothing out. */
export function isUnrestricted(constraint: Constraint): boolean {
  return (
    constraint.patient === undefined &&
    constraint.panel === undefined &&
    constraint.refersTo === undefined &&
    constraint.query === undefined &&
    constraint.id === undefined
  )
}

/** What is within any of the limits. A narrower limit adds nothing to a wider one, and takes nothing from it. */
export function uniteConstraints(constraints: readonly Constraint[]): AccessFilter {
  if (constraints.some(isUnrestricted)) return 'everything'
  if (constraints.length < 2) return constraints
  const { keyOf, widerKeys } = subjectKeys()
  // By subject and then by query: where each was said first.
  const firsts = new Map<string, Map<string, number>>()
  for (const [at, constraint] of constraints.entries()) {
    const subject = keyOf(constraint)
    const queries = firsts.get(subject) ?? new Map<string, number>()
    firsts.set(subject, queries)
    const query = queryKey(constraint.query ?? [])
    if (!queries.has(query)) queries.set(query, at)
  }
  return constraints.filter((constraint, at) => {
    const wider = widerKeys(constraint).flatMap(subject => firsts.get(subject) ?? [])
    const said = impliedKeys(constraint.query ?? []).flatMap(query =>
      wider.flatMap(queries => queries.get(query) ?? []),
    )
    // A later limit that is the same or narrower adds nothing.
    return said.every(first => first === at)
  })
}

/** Limits that require the same but for their queries: any of the queries, and all else. */
export interface ConstraintGroup {
  readonly subject: Omit<Constraint, 'query'>
  /** Each is a list of search parameters that all match; an empty one leaves nothing out. */
  readonly queries: readonly NonNullable<Constraint['query']>[]
}

const groups = new WeakMap<readonly Constraint[], readonly ConstraintGroup[]>()

/** The limits by what they require beside their queries, so that this is looked at once for each resource. */
export function groupConstraints(constraints: readonly Constraint[]): readonly ConstraintGroup[] {
  const known = groups.get(constraints)
  if (known) return known
  const { keyOf } = subjectKeys()
  const grouped = [...Map.groupBy(constraints, keyOf).values()].map(alike => {
    const { query: _, ...subject }: Constraint = alike[0] ?? {}
    return { subject, queries: alike.map(({ query = [] }) => query) }
  })
  groups.set(constraints, grouped)
  return grouped
}

/** Texts for what a limit requires beside its query. */
function subjectKeys() {
  const panels = new Map<Panel, number>()
  const known = new Map<string, readonly string[]>()

  function partsOf({ patient, panel, id, exclusive, refersTo }: Constraint): readonly unknown[] {
    // Panels are the same only if they are one object.
    if (panel && !panels.has(panel)) panels.set(panel, panels.size)
    return [patient, panel && panels.get(panel), id, exclusive, refersTo]
  }

  return {
    keyOf: (constraint: Constraint) => JSON.stringify(partsOf(constraint)),
    /** The keys of all that contains it, itself included: any of what it requires may be left out. */
    widerKeys(constraint: Constraint): readonly string[] {
      const parts = partsOf(constraint)
      const key = JSON.stringify(parts)
      const wider = known.get(key) ?? subsetsOf(parts).map(some => JSON.stringify(some))
      known.set(key, wider)
      return wider
    },
  }
}

function subsetsOf(parts: readonly unknown[]): readonly (readonly unknown[])[] {
  return parts.reduce<readonly (readonly unknown[])[]>(
    (known, part) =>
      known.flatMap(some =>
        part === undefined
          ? [[...some, part]]
          : [
              [...some, part],
              [...some, undefined],
            ],
      ),
    [[]],
  )
}
