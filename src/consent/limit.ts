import type { Limit, Reach } from './reach.ts'

/** The limit, and all of these search parameters match too. */
export function narrowed(limit: Limit, query: NonNullable<Limit['query']>): Limit {
  return query.length === 0 ? limit : { ...limit, query: [...(limit.query ?? []), ...query] }
}

/** Whether a limit leaves nothing out. */
export function isEverything(limit: Limit): boolean {
  return (
    limit.patient === undefined &&
    limit.panel === undefined &&
    limit.query === undefined &&
    limit.id === undefined
  )
}

/** What is within any of the limits. A narrower limit adds nothing to a wider one, and takes nothing from it. */
export function union(limits: readonly Limit[]): Reach {
  if (limits.some(isEverything)) return 'everything'
  return limits.filter((limit, at) => !limits.some((other, place) => replaces(other, place, limit, at)))
}

// Of two that say the same the first stays.
function replaces(other: Limit, place: number, limit: Limit, at: number): boolean {
  return place !== at && isWider(other, limit) && (place < at || !isWider(limit, other))
}

function isWider(wide: Limit, narrow: Limit): boolean {
  return (
    (wide.patient === undefined || wide.patient === narrow.patient) &&
    (wide.panel === undefined || wide.panel === narrow.panel) &&
    (wide.id === undefined || wide.id === narrow.id) &&
    (wide.sole === undefined || narrow.sole === true) &&
    (wide.query ?? []).every(([name, value]) =>
      (narrow.query ?? []).some(([n, v]) => n === name && v === value),
    )
  )
}
