/** Microseconds of processor time a call, of the best round: wall time counts the company on the machine. */
export async function timeRounds(
  rounds: number,
  calls: number,
  round: (at: number) => unknown,
): Promise<number> {
  let best = Number.POSITIVE_INFINITY
  for (let at = 0; at < rounds; at++) {
    const before = process.cpuUsage()
    await round(at)
    const { user, system } = process.cpuUsage(before)
    best = Math.min(best, (user + system) / calls)
  }
  return best
}

export const ROUNDS = 5
export const CALLS = 200
