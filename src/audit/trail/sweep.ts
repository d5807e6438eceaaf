import type { Store } from '../../store/index.ts'
import { reportUnknownOutcomes } from './intents.ts'

const DAY = 86_400_000
const HOUR = 3_600_000
const MINUTE = 60_000
const AT_ONCE = 1000

/** Removes records that are older than so many days (`smart.server.audit-days`), some at a time: nobody waits long. */
export async function sweepAudit({ db }: Store, days: number, now: number): Promise<number> {
  let removed = 0
  for (;;) {
    const old = db
      .selectFrom('audit_event')
      .select('id')
      .where('at', '<', now - days * DAY)
      .limit(AT_ONCE)
    const { numDeletedRows } = await db.deleteFrom('audit_event').where('id', 'in', old).executeTakeFirst()
    removed += Number(numDeletedRows)
    if (numDeletedRows < AT_ONCE) return removed
  }
}

export interface AuditSweeping {
  readonly days: number
  readonly clock?: () => number
  readonly everyMs?: number
  readonly onError: (error: unknown) => void
}

/** Sweeps now and every hour until it is stopped. */
export function startSweepingAudit(
  store: Store,
  { days, clock = Date.now, everyMs = HOUR, onError }: AuditSweeping,
): { stop(): Promise<void> } {
  return repeat(() => sweepAudit(store, days, clock()), everyMs, onError)
}

/** Reports changes whose outcome is not known, now and every minute until it is stopped. */
export function startReportingUnknown(
  store: Store,
  { clock = Date.now, everyMs = MINUTE, onError }: Omit<AuditSweeping, 'days'>,
): { stop(): Promise<void> } {
  return repeat(() => reportUnknownOutcomes(store, clock()), everyMs, onError)
}

function repeat(work: () => Promise<unknown>, everyMs: number, onError: (error: unknown) => void) {
  let running: Promise<unknown> = Promise.resolve()
  const round = () => {
    running = running.then(work).catch(onError)
  }
  round()
  const timer = setInterval(round, everyMs)
  timer.unref()
  return {
    stop: async () => {
      clearInterval(timer)
      await running
    },
  }
}
