import { type Compared, compareFigures, type Figures, type Turn } from './ratios.ts'

/** The fewest that have an interval of 90 %. */
const MIN_TURNS = 5
const MAX_TURNS = 11
/** Between the ends of the interval. */
const NARROW = 0.1

/** Measures both trees in turns, in an order that changes, until the interval of each ratio is narrow. */
export async function takeTurns(
  measureBefore: () => Promise<Figures>,
  measureNow: () => Promise<Figures>,
): Promise<readonly Compared[]> {
  const turns: Turn[] = []
  for (;;) {
    if (turns.length % 2 === 0) {
      const before = await measureBefore()
      turns.push({ before, now: await measureNow() })
    } else {
      const now = await measureNow()
      turns.push({ before: await measureBefore(), now })
    }
    const compared = compareFigures(turns)
    if (turns.length >= MIN_TURNS && (turns.length === MAX_TURNS || compared.every(isSettled)))
      return compared
  }
}

function isSettled({ interval: [low, high] }: Compared): boolean {
  return high - low <= NARROW
}
