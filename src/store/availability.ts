import { randomBytes, randomInt, randomUUID } from 'node:crypto'
import { DatabaseUnavailable } from '../sqlite/index.ts'

/** Prefixes of SQLSTATE: connection lost, out of resources, shutting down or starting. */
const SQLSTATE_CLASSES = ['08', '53', '57P'] as const

const SQLSTATES: ReadonlySet<string> = new Set([
  '25006', // read_only_sql_transaction: a standby
  '40001', // serialization_failure
  '40P01', // deadlock_detected
  '42501', // insufficient_privilege: an administrator can grant it without a restart
  '55P03', // lock_not_available
  '57014', // query_canceled: statement_timeout
  '58030', // io_error
])

/** Primary result codes of SQLite: BUSY, LOCKED, NOMEM, READONLY, IOERR, FULL, CANTOPEN. */
const SQLITE_CODES: ReadonlySet<number> = new Set([5, 6, 7, 8, 10, 13, 14])

const NETWORK_CODES: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EPIPE',
  'ETIMEDOUT',
])

// `pg` has no code for errors of its own timers and sockets, nor does a closed store.
const DRIVER_MESSAGES =
  /^(driver has already been destroyed|Cannot use a pool after calling end|Connection terminated|Query read timeout|timeout exceeded when trying to connect|Client has encountered a connection error)/

/** Errors of the database: a client, or another server, may break its connection with the same codes. */
const databaseErrors = new WeakSet<Error>()

/** True if the same request may succeed later. A violated constraint or a refused value is not such an error. */
export function isDatabaseUnavailable(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  return (
    error instanceof DatabaseUnavailable ||
    hasUnavailableCode(error) ||
    DRIVER_MESSAGES.test(error.message) ||
    (databaseErrors.has(error) && hasNetworkCode(error)) ||
    (error.cause !== undefined && isDatabaseUnavailable(error.cause))
  )
}

function hasNetworkCode(error: unknown): boolean {
  if (error instanceof AggregateError) return error.errors.some(hasNetworkCode)
  return (
    error instanceof Error &&
    (('code' in error && typeof error.code === 'string' && NETWORK_CODES.has(error.code)) ||
      hasNetworkCode(error.cause))
  )
}

/** The primary result code of SQLite (its low byte), a SQLSTATE, or a code of Node. */
function readCode(error: Error): unknown {
  if ('errcode' in error) return Number(error.errcode) & 0xff
  return 'code' in error ? error.code : undefined
}

/** True if another writer caused the error, which says nothing about the database itself. */
export function isConflict(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  return CONFLICTS.has(readCode(error)) || (error.cause !== undefined && isConflict(error.cause))
}

/** serialization_failure, deadlock_detected, lock_not_available; BUSY, LOCKED. */
const CONFLICTS: ReadonlySet<unknown> = new Set(['40001', '40P01', '55P03', 5, 6])

const DISK_IS_FULL = 'its disk is full'

/** Safe to show to anybody: names no host, user or file. */
export function describeUnavailable(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined
  const code = readCode(error)
  if (code === '25006' || code === 8 || code === 'EROFS') return 'it is read-only'
  if (code === '53100' || code === 13 || code === 'ENOSPC') return DISK_IS_FULL
  if (code === '42501' || code === 'EACCES') return 'it denies write access'
  if (code === '58030' || code === 10 || code === 'EIO') return 'its disk cannot be read or written'
  return error.cause === undefined ? undefined : describeUnavailable(error.cause)
}

function hasUnavailableCode(error: Error): boolean {
  const code = readCode(error)
  if (typeof code === 'number') return SQLITE_CODES.has(code)
  return (
    typeof code === 'string' &&
    (SQLSTATES.has(code) || SQLSTATE_CLASSES.some(prefix => code.startsWith(prefix)))
  )
}

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
    // PostgreSQL never reuses an id of its sequence, so that each probe would leave a hole in the ids of the trail. The id is
    // random, because a probe of another process would wait for the same one.
    `insert into audit_event (id, at, server, kind, allowed, status) values (-${randomInt(1, 2 ** 47)}, 0, 'auth', 'probe', false, 0)`,
    'rollback to savepoint probe',
    `insert into audit_intent (id, at, record) values ('${id}', 0, '')`,
    `delete from audit_intent where id = '${id}'`,
  ]
}

/**
 * Two further transactions, for a disk that may be full: the few pages of the other test fit where every request fails. The
 * row is larger than the records of a request, and no job has its name.
 */
export function listSpaceStatements(): readonly [insert: string, remove: string] {
  const row = `('space ${randomUUID()}', '${makeSpaceText()}', 0)`
  return [
    `insert into lease (job, holder, ends_at) values ${row}`,
    "delete from lease where job like 'space %'",
  ]
}

const SPACE_BYTES = 192 * 1024

/** Random, so that no database compresses it. */
export function makeSpaceText(): string {
  return randomBytes(SPACE_BYTES).toString('base64')
}

function isFullDisk(error: unknown): boolean {
  return describeUnavailable(error) === DISK_IS_FULL
}

function rememberError(error: unknown): void {
  if (error instanceof Error) databaseErrors.add(error)
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
  /** Uses the database while it is available, and reports its errors. */
  use<T>(work: () => Promise<T>): Promise<T>
  /** Reports every error of the database, so that a write is tried before other queries fail in the same way. */
  report(error: unknown): void
}

interface AvailabilityOptions {
  /** Rejects within a bounded time. `mayBeFull`: a write failed because the disk is full, so that a small one proves little. */
  readonly tryWrite: (mayBeFull: boolean) => Promise<void>
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
  let mayBeFull = false

  function start(): Promise<void> {
    const isThorough = mayBeFull
    const result = tryWrite(isThorough).then(
      () => {
        failure = undefined
        mayBeFull &&= !isThorough
      },
      cause => {
        rememberError(cause)
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

  async function enter(): Promise<void> {
    if (!failure) {
      if (whileInUse && watching) probe().catch(() => {})
      return
    }
    const { cause } = failure
    await probe().catch(() => {
      throw new DatabaseUnavailable('Cannot use database: a write failed', { cause })
    })
  }

  function report(error: unknown): void {
    rememberError(error)
    if (isFullDisk(error) && !mayBeFull) {
      mayBeFull = true
      // What a small write has shown before does not count.
      last = undefined
    }
    if (watching && !failure && isDatabaseUnavailable(error) && !isConflict(error)) start().catch(() => {})
  }

  return {
    begin() {
      watching = true
    },
    probe,
    enter,
    report,
    async use(work) {
      await enter()
      try {
        return await work()
      } catch (error) {
        report(error)
        throw error
      }
    },
  }
}
