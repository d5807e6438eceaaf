/** For cases in which the driver does not report an error of its own. */
export class DatabaseUnavailable extends Error {}

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

/** True if the same request may succeed later. A violated constraint or a refused value is not such an error. */
export function isDatabaseUnavailable(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  if (
    error instanceof DatabaseUnavailable ||
    hasUnavailableCode(error) ||
    DRIVER_MESSAGES.test(error.message)
  )
    return true
  if (error instanceof AggregateError && error.errors.some(isDatabaseUnavailable)) return true
  return error.cause !== undefined && isDatabaseUnavailable(error.cause)
}

/** True if another writer caused the error, which says nothing about the database itself. */
export function isConflict(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const code = 'errcode' in error ? Number(error.errcode) & 0xff : 'code' in error ? error.code : undefined
  return CONFLICTS.has(code) || (error.cause !== undefined && isConflict(error.cause))
}

/** serialization_failure, deadlock_detected, lock_not_available; BUSY, LOCKED. */
const CONFLICTS: ReadonlySet<unknown> = new Set(['40001', '40P01', '55P03', 5, 6])

/** Safe to show to anybody: names no host, user or file. */
export function describeUnavailable(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined
  const code = 'errcode' in error ? Number(error.errcode) & 0xff : 'code' in error ? error.code : undefined
  if (code === '25006' || code === 8) return 'it is read-only'
  if (code === '53100' || code === 13) return 'its disk is full'
  if (code === '42501') return 'it denies write access'
  if (code === '58030' || code === 10) return 'its disk cannot be read or written'
  return error.cause === undefined ? undefined : describeUnavailable(error.cause)
}

function hasUnavailableCode(error: Error): boolean {
  // SQLite: the low byte is the primary code.
  if ('errcode' in error) return SQLITE_CODES.has(Number(error.errcode) & 0xff)
  if (!('code' in error) || typeof error.code !== 'string') return false
  const { code } = error
  return (
    SQLSTATES.has(code) || NETWORK_CODES.has(code) || SQLSTATE_CLASSES.some(prefix => code.startsWith(prefix))
  )
}
