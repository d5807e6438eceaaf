import { randomUUID } from 'node:crypto'
import type { Instant } from './schema.ts'
import type { Store } from './store.ts'

export interface JobOptions {
  readonly clock?: () => number
  readonly everyMs?: number
  /** Longer than a round of the job takes. */
  readonly leaseMs?: number
  /** A round starts, and the lease is taken, only if there is work. */
  readonly hasWork?: () => Promise<boolean>
  readonly onError: (error: unknown) => void
}

/** The process that repeats a job keeps its lease; if it ends, another process takes over after two intervals. */
const INTERVALS = 2

/**
 * Repeats a job at an interval, in one of the processes that share the database. A failure is reported, and the job
 * is repeated at the next interval.
 */
export function repeatInOneProcess(
  store: Store,
  job: string,
  { clock = Date.now, everyMs = 60_000, leaseMs = INTERVALS * everyMs, hasWork, onError }: JobOptions,
  work: (now: Instant) => Promise<unknown>,
): { stop(): Promise<void> } {
  const holder = randomUUID()
  let running: Promise<unknown> | undefined
  const round = async () => {
    if (hasWork && !(await hasWork())) return
    if (await takeLease(store, { job, holder, ends_at: clock() + leaseMs }, clock())) await work(clock())
  }
  const schedule = () => {
    running ??= round()
      .catch(onError)
      .finally(() => {
        running = undefined
      })
  }
  schedule()
  const timer = setInterval(schedule, everyMs)
  timer.unref()
  return {
    stop: async () => {
      clearInterval(timer)
      await running
      await releaseLease(store, holder).catch(onError)
    },
  }
}

interface Lease {
  readonly job: string
  readonly holder: string
  readonly ends_at: Instant
}

async function takeLease({ db }: Store, lease: Lease, now: Instant): Promise<boolean> {
  const { numInsertedOrUpdatedRows = 0n } = await db
    .insertInto('lease')
    .values(lease)
    .onConflict(conflict =>
      conflict
        .column('job')
        .doUpdateSet({ holder: lease.holder, ends_at: lease.ends_at })
        .where(({ or, eb }) => or([eb('lease.ends_at', '<=', now), eb('lease.holder', '=', lease.holder)])),
    )
    .executeTakeFirst()
  return numInsertedOrUpdatedRows > 0n
}

async function releaseLease({ db }: Store, holder: string): Promise<void> {
  await db.deleteFrom('lease').where('holder', '=', holder).execute()
}
