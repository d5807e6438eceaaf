/**
 * Newest first; what has no date last, in the order it came. FHIR dates may be partial: each counts as its
 * beginning, and a moment in another zone as the moment it is.
 */
export function sortNewestFirst<T>(
  items: readonly T[],
  dateOf: (item: T) => string | undefined,
): readonly T[] {
  const dated = items.map(item => ({ item, at: Date.parse(dateOf(item) ?? '') }))
  const rank = (at: number): number => (Number.isNaN(at) ? Number.NEGATIVE_INFINITY : at)
  return dated.sort((a, b) => compare(rank(b.at), rank(a.at))).map(({ item }) => item)
}

function compare(a: number, b: number): number {
  return a === b ? 0 : a < b ? -1 : 1
}
