import { impliedKeys, queryKey } from '../scope/index.ts'
import type { Limit, Reach } from './reach.ts'
import type { Panel } from './rights/panel.ts'

/** The limit, and all of these search parameters match too. */
export function narrowed(limit: Limit, query: NonNullable<Limit['query']>): Limit {
  if (query.length === 0) return limit
  return { ...limit, query: limit.query === undefined ? query : [...limit.query, ...query] }
}

/** Whether a limit leaves nothing out. */
export function isEverything(limit: Limit): boolean {
  return (
    limit.patient === undefined &&
    limit.panel === undefined &&
    limit.refersTo === undefined &&
    limit.query === undefined &&
    limit.id === undefined
  )
}

/** What is within any of the limits. A narrower limit adds nothing to a wider one, and takes nothing from it. */
export function union(limits: readonly Limit[]): Reach {
  if (limits.some(isEverything)) return 'everything'
  if (limits.length < 2) return limits
  const { keyOf, widerKeys } = subjectKeys()
  // By subject and then by query: where each was said first.
  const firsts = new Map<string, Map<string, number>>()
  for (const [at, limit] of limits.entries()) {
    const subject = keyOf(limit)
    const queries = firsts.get(subject) ?? new Map<string, number>()
    firsts.set(subject, queries)
    const query = queryKey(limit.query ?? [])
    if (!queries.has(query)) queries.set(query, at)
  }
  return limits.filter((limit, at) => {
    const wider = widerKeys(limit).flatMap(subject => firsts.get(subject) ?? [])
    const said = impliedKeys(limit.query ?? []).flatMap(query =>
      wider.flatMap(queries => queries.get(query) ?? []),
    )
    // A later limit that is the same or narrower adds nothing.
    return said.every(first => first === at)
  })
}

/** Limits that require the same but for their queries: any of the queries, and all else. */
export interface LimitGroup {
  readonly subject: Omit<Limit, 'query'>
  /** Each is a list of search parameters that all match; an empty one leaves nothing out. */
  readonly queries: readonly NonNullable<Limit['query']>[]
}

const groups = new WeakMap<readonly Limit[], readonly LimitGroup[]>()

/** The limits by what they require beside their queries, so that this is looked at once for each resource. */
export function groupLimits(limits: readonly Limit[]): readonly LimitGroup[] {
  const known = groups.get(limits)
  if (known) return known
  const { keyOf } = subjectKeys()
  const grouped = [...Map.groupBy(limits, keyOf).values()].flatMap(([first, ...others]) => {
    if (!first) return []
    const { query: _, ...subject } = first
    return [{ subject, queries: [first, ...others].map(({ query = [] }) => query) }]
  })
  groups.set(limits, grouped)
  return grouped
}

/** Texts for what a limit requires beside its query. */
function subjectKeys() {
  const panels = new Map<Panel, number>()
  const known = new Map<string, readonly string[]>()

  function partsOf({ patient, panel, id, sole, refersTo }: Limit): readonly unknown[] {
    // Panels are the same only if they are one object.
    if (panel && !panels.has(panel)) panels.set(panel, panels.size)
    return [patient, panel && panels.get(panel), id, sole, refersTo]
  }

  return {
    keyOf: (limit: Limit) => JSON.stringify(partsOf(limit)),
    /** The keys of all that contains it, itself included: any of what it requires may be left out. */
    widerKeys(limit: Limit): readonly string[] {
      const parts = partsOf(limit)
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
