/** The name that was probably meant, or undefined when none is near. */
export function findNearest(name: string, names: readonly string[]): string | undefined {
  const written = name.toLowerCase()
  const begun = names.find(candidate => written.length > 8 && candidate.toLowerCase().startsWith(written))
  if (begun !== undefined) return begun
  const ranked = names
    .map(candidate => ({ candidate, distance: distance(written, candidate.toLowerCase()) }))
    .sort((a, b) => a.distance - b.distance)[0]
  return ranked !== undefined && ranked.distance <= Math.max(2, name.length / 5)
    ? ranked.candidate
    : undefined
}

/** How many letters must be added, left out or changed (Levenshtein). */
function distance(a: string, b: string): number {
  let above = Array.from({ length: b.length + 1 }, (_, j) => j)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const changed = at(above, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1)
      row.push(Math.min(changed, at(above, j) + 1, at(row, j - 1) + 1))
    }
    above = row
  }
  return at(above, b.length)
}

function at(row: readonly number[], index: number): number {
  return row[index] ?? Number.POSITIVE_INFINITY
}
