import type { Person } from './person.ts'

/** Letters only, without case and accents: `Núñez-Ó` and `nunezo` are the same name to a tired eye. */
function plain(text: string | undefined): string {
  return (text ?? '')
    .normalize('NFD')
    .replace(/\p{Mark}/gu, '')
    .toLowerCase()
    .replace(/[^\p{Letter}]/gu, '')
}

/** Optimal string alignment: one added, lost, changed or swapped letter is one step. */
function distance(a: string, b: string): number {
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

function firstGiven(person: Person): string {
  return plain(person.name.given?.split(' ')[0])
}

/** Near: the same, one the start of the other (Alba, Alban), or a slip apart: one letter, two in a long name. */
function isNear(a: string, b: string): boolean {
  if (a === '' || b === '') return false
  const shorter = Math.min(a.length, b.length)
  if (shorter >= 3 && (a.startsWith(b) || b.startsWith(a))) return true
  return distance(a, b) <= (shorter >= 6 ? 2 : 1)
}

/** Two patients that are easily taken for each other: same family name, near given name (design: Alike). */
export function isAlike(a: Person, b: Person): boolean {
  const family = plain(a.name.family)
  if (a.id === b.id || family === '' || family !== plain(b.name.family)) return false
  return isNear(firstGiven(a), firstGiven(b))
}

/** Those of `others` that are easily taken for this person. */
export function findAlike(person: Person, others: readonly Person[]): readonly Person[] {
  return others.filter(other => isAlike(person, other))
}
