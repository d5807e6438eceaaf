import type { Insertable, Kysely, Transaction } from 'kysely'
import { GroupCommit } from '../sqlite/index.ts'
import { isDatabaseUnavailable } from './availability.ts'
import type { Schema } from './schema.ts'

/** The audit trail, in the table `audit_event`. `sqlite/trail.ts` writes it on SQLite, `postgres.ts` on PostgreSQL. */
export interface Trail {
  /**
   * Adds records and resolves when they are on disk. Concurrent calls share one commit. Rejects only for the caller's own
   * records, unless the database is unavailable.
   */
  append(records: readonly Insertable<Schema['audit_event']>[]): Promise<void>
  /** Adds a record to a transaction: it is stored with the change that it records, or not at all. */
  appendIn(trx: Transaction<Schema>, record: Insertable<Schema['audit_event']>): Promise<void>
  /** Adds announcements of changes in the same way as `append`. */
  announce(intents: readonly Insertable<Schema['audit_intent']>[]): Promise<void>
  /**
   * The database, for queries of the trail: all records that any process has appended are in `audit_event`. On SQLite they
   * wait in `audit_waiting` first, because adding them to the indexes takes longer than a request should.
   */
  read(): Promise<Kysely<Schema>>
}

/** The rows of one caller. */
interface Entry<Row> {
  readonly rows: readonly Row[]
  failure?: { readonly cause: unknown }
}

interface Collected<Row> {
  readonly entries: Entry<Row>[]
  count: number
}

type Write<Row> = (rows: readonly Row[]) => Promise<void>

/** Further rows are rejected. */
const MAX_WAITING = 20_000

/** Returns a function that writes rows together with those of other callers, and resolves when its own are on disk. */
export function writeTogether<Row>(write: Write<Row>, limit = MAX_WAITING): Write<Row> {
  const groups = new GroupCommit<Collected<Row>>(
    () => ({ entries: [], count: 0 }),
    ({ entries }) => writeEntries(entries, write),
  )
  return async rows => {
    const { content, durable } = groups.join()
    if (content.count + rows.length > limit)
      throw new Error(`Cannot store audit records: ${content.count} are waiting`)
    const entry: Entry<Row> = { rows }
    content.entries.push(entry)
    content.count += rows.length
    await durable
    if (entry.failure) throw entry.failure.cause
  }
}

/** Refused rows fail only their caller: each half of a refused group is tried separately. */
async function writeEntries<Row>(entries: readonly Entry<Row>[], write: Write<Row>): Promise<void> {
  try {
    await write(entries.flatMap(entry => entry.rows))
  } catch (cause) {
    if (entries.length <= 1 || isDatabaseUnavailable(cause)) {
      for (const entry of entries) entry.failure = { cause }
      return
    }
    const middle = Math.ceil(entries.length / 2)
    await writeEntries(entries.slice(0, middle), write)
    await writeEntries(entries.slice(middle), write)
  }
}
