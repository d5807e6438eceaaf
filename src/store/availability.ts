import { DatabaseUnavailable, isConflict, isDatabaseUnavailable } from './unavailable.ts'

/** A write is tried at most this often. */
const PROBE_EVERY_MS = 2000

/** Whether the database can be written, as far as a write has shown. */
export interface Availability {
  /** From now on the database is watched: its tables are there. */
  begin(): void
  /** Rejects when a write that was tried within the last two seconds failed; tries one where none was. */
  probe(): Promise<void>
  /**
   * To be awaited before the database is used. Rejects at once while the last write failed, so that no request waits
   * for a database that is known to be unavailable.
   */
  enter(): Promise<void>
  /** Tells of an error of a query, so that a write is tried before others fail in the same way. */
  report(error: unknown): void
}

export interface AvailabilityOptions {
  /** Writes something and takes it back. Rejects within a bounded time. */
  readonly tryWrite: () => Promise<void>
  readonly clock?: () => number
  /** Tries a write now and then while the database is in use: for one that may stop answering without an error. */
  readonly whileInUse?: boolean
}

export function watchAvailability(options: AvailabilityOptions): Availability {
  const { tryWrite, clock = () => performance.now(), whileInUse = false } = options
  let last: { readonly at: number; readonly result: Promise<void> } | undefined
  let watching = false
  let failure: { readonly cause: unknown } | undefined

  function start(): Promise<void> {
    const result = tryWrite().then(
      () => {
        failure = undefined
      },
      cause => {
        // A conflict with another writer says nothing about the next write.
        failure = isConflict(cause) ? failure : { cause }
        throw cause
      },
    )
    result.catch(() => {})
    last = { at: clock(), result }
    return result
  }

  function probe(): Promise<void> {
    return last && clock() - last.at < PROBE_EVERY_MS ? last.result : start()
  }

  return {
    begin() {
      watching = true
    },
    probe,
    async enter() {
      if (!failure) {
        if (whileInUse && watching) probe().catch(() => {})
        return
      }
      const { cause } = failure
      await probe().catch(() => {
        throw new DatabaseUnavailable('Cannot use database: a write failed', { cause })
      })
    },
    report(error) {
      if (watching && !failure && isDatabaseUnavailable(error) && !isConflict(error)) start().catch(() => {})
    },
  }
}
