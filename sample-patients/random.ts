/** A source of choices that gives the same ones for the same seed (sfc32). Not for secrets. */
export interface Random {
  /** At least 0, below 1. */
  next(): number
  /** A whole number, both ends included. */
  int(from: number, to: number): number
  between(from: number, to: number): number
  /** Bell-shaped around the middle, never further than three spreads away. */
  around(middle: number, spread: number): number
  chance(probability: number): boolean
  pick<const T extends readonly [unknown, ...unknown[]]>(from: T): T[number]
  shuffle<T>(items: readonly T[]): T[]
}

export function createRandom(seed: string): Random {
  const next = sfc32(seed)
  const int = (from: number, to: number) => from + Math.floor(next() * (to - from + 1))
  return {
    next,
    int,
    between: (from, to) => from + next() * (to - from),
    around: (middle, spread) => middle + (next() + next() + next() + next() - 2) * 1.5 * spread,
    chance: probability => next() < probability,
    pick: from => from[int(0, from.length - 1)] ?? from[0],
    shuffle: items =>
      items
        .map(item => ({ item, key: next() }))
        .sort((a, b) => a.key - b.key)
        .map(it => it.item),
  }
}

function sfc32(seed: string): () => number {
  let a = hash(seed, 1)
  let b = hash(seed, 2)
  let c = hash(seed, 3)
  let counter = 1
  const step = () => {
    const sum = (((a + b) | 0) + counter) | 0
    counter = (counter + 1) | 0
    a = b ^ (b >>> 9)
    b = (c + (c << 3)) | 0
    c = (((c << 21) | (c >>> 11)) + sum) | 0
    return (sum >>> 0) / 2 ** 32
  }
  for (let round = 0; round < 12; round++) step()
  return step
}

/** FNV-1a with a salt. */
function hash(text: string, salt: number): number {
  let value = 0x811c9dc5 ^ Math.imul(salt, 0x9e3779b1)
  for (let at = 0; at < text.length; at++) value = Math.imul(value ^ text.charCodeAt(at), 0x01000193)
  return value | 0
}
