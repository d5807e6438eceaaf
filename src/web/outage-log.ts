import type { FastifyBaseLogger } from 'fastify'

/** How often the count is logged during an outage. */
const TELL_EVERY_MS = 60_000
/** An outage is over when no request has failed for so long. */
const OVER_AFTER_MS = 60_000

/** Logs the first failure of an outage with its cause, and then how many requests failed: not a stack for each. */
export function logOutages(log: FastifyBaseLogger, clock: () => number): (error: unknown) => void {
  let outage: { failed: number; toldAt: number; lastAt: number } | undefined
  return error => {
    const now = clock()
    if (!outage || now - outage.lastAt > OVER_AFTER_MS) {
      outage = { failed: 0, toldAt: now, lastAt: now }
      log.error({ err: error }, 'Database unavailable: requests get 503')
      return
    }
    outage.failed++
    outage.lastAt = now
    if (now - outage.toldAt < TELL_EVERY_MS) return
    outage.toldAt = now
    log.error({ failed: outage.failed }, 'Database still unavailable')
  }
}
