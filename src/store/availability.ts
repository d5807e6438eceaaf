import { randomUUID } from 'node:crypto'
import { DatabaseUnavailable, isConflict, isDatabaseUnavailable } from './unavailable.ts'

/**
 * A transaction that tests whether the database accepts writes, and leaves no rows. If requests depend on the audit
 * trail, it tests the trail: adding a record needs the same privilege, space and primary as real records; the
 * commit needs the disk.
 */
export function listProbeStatements(auditRequired: boolean): readonly string[] {
  const id = randomUUID()
  if (!auditRequired)
    return [
      `insert into revocation (id, revoked_at, expires_at) values ('${id}', 0, 0)`,
      `delete from revocation where id = '${id}'`,
    ]
  return [
    'savepoint probe',
    "insert into audit_event (at, server, kind, allowed, status) values (0, 'auth', 'probe', false, 0)",
    'rollback to savepoint probe',
    `insert into audit_intent (id, at, record) values ('${id}', 0, '')`,
    `delete from audit_intent where id = '${id}'`,
  ]
}

/** The interval between write attempts. */
const PROBE_EVERY_MS = 2000

export interface Availability {
  begin(): void
  /** Rejects if a write attempt within the last two seconds failed; tries one if there was none. */
  probe(): Promise<void>
  /**
   * Await this before using the database. Rejects at once while the last write failed, so that no request waits for
   * an unavailable database.
   */
  enter(): Promise<void>
  /** Reports an error of a query, so that a write is tried before other queries fail in the same way. */
  report(error: unknown): void
}

interface AvailabilityOptions {
  /** Rejects within a bounded time. */
  readonly tryWrite: () => Promise<void>
  readonly clock?: () => number
  /**
   * Tries writes at intervals while the database is in use: for a database that may stop responding without an
   * error.
   */
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
        // A conflict with another writer does not predict the next write.
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
