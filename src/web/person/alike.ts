import type { Person } from './person.ts'

/** Keeps only letters, without case and accents: `Núñez-Ó` and `nunezo` look like the same name. */
function normalize(text: string | undefined): string {
  return (text ?? '')
    .normalize('NFD')
    .replace(/\p{Mark}/gu, '')
    .toLowerCase()
    .replace(/[^\p{Letter}]/gu, '')
}

/** Computes the optimal string alignment distance: each added, missing, changed or swapped letter counts one. */
function computeDistance(a: string, b: string): number {
  let beforeLast: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, at) => at)
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

function readFirstGiven(person: Person): string {
  return normalize(person.name.given?.split(' ')[0])
}

/** Whether two names are equal, one begins with the other (Alba, Alban), or they differ in one letter (two if long). */
function isNear(a: string, b: string): boolean {
  if (a === '' || b === '') return false
  const shorter = Math.min(a.length, b.length)
  if (shorter >= 3 && (a.startsWith(b) || b.startsWith(a))) return true
  return computeDistance(a, b) <= (shorter >= 6 ? 2 : 1)
}

/** Whether two patients are easily confused: the same family name and similar given names. */
export function isAlike(a: Person, b: Person): boolean {
  const family = normalize(a.name.family)
  if (a.id === b.id || family === '' || family !== normalize(b.name.family)) return false
  return isNear(readFirstGiven(a), readFirstGiven(b))
}

export function findAlike(person: Person, others: readonly Person[]): readonly Person[] {
  return others.filter(other => isAlike(person, other))
}
