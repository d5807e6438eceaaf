/** The name that was probably meant. */
export function findNearest(name: string, names: readonly string[]): string | undefined {
  const written = name.toLowerCase()
  const begun = names.find(candidate => written.length > 8 && candidate.toLowerCase().startsWith(written))
  if (begun !== undefined) return begun
  const ranked = names
    .map(candidate => ({ candidate, distance: computeDistance(written, candidate.toLowerCase()) }))
    .sort((a, b) => a.distance - b.distance)[0]
  return ranked !== undefined && ranked.distance <= Math.max(2, name.length / 5)
    ? ranked.candidate
    : undefined
}

/**
 * The optimal string alignment distance of two texts: each added, missing, changed or swapped letter counts one. Its cost
 * is the product of their lengths.
 */
export function computeDistance(a: string, b: string): number {
  let beforeLast: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let row = 1; row <= a.length; row++) {
    const current = [row]
    for (let column = 1; column <= b.length; column++) {
      const same = a[row - 1] === b[column - 1]
      const swapped = row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1]
      current[column] = Math.min(
        (last[column] ?? 0) + 1,
        (current[column - 1] ?? 0) + 1,
        (last[column - 1] ?? 0) + (same ? 0 : 1),
        swapped ? (beforeLast[column - 2] ?? 0) + 1 : Number.POSITIVE_INFINITY,
      )
    }
    beforeLast = last
    last = current
  }
  return last[b.length] ?? 0
}
