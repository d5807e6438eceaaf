const ROUNDS = 40

/** A result that is clearly not linear is measured more often: noise ends some time, a quadratic growth stays. */
const SUSPICIOUS = 5
const MOST_ROUNDS = 400

/**
 * How much longer a piece of work takes when its input is four times as large: about 4 if it is linear, 16 if it is
 * quadratic. Both sizes run in turns in this process and the best run of each counts, so the result does not depend on
 * the machine or its load.
 */
export function measureGrowth(work: (size: number) => void, size: number): number {
  const best = { small: Number.POSITIVE_INFINITY, large: Number.POSITIVE_INFINITY }
  const isSuspicious = () => best.large / best.small > SUSPICIOUS
  for (let round = 0; round < ROUNDS || (round < MOST_ROUNDS && isSuspicious()); round++) {
    best.small = Math.min(
      best.small,
      timeOf(() => work(size)),
    )
    best.large = Math.min(
      best.large,
      timeOf(() => work(size * 4)),
    )
  }
  return best.large / best.small
}

function timeOf(run: () => void): number {
  const start = performance.now()
  run()
  return performance.now() - start
}
