import { type Insertable, sql, type Transaction } from 'kysely'
import { isDatabaseUnavailable, prepareInsert, type Schema, type Store } from '../store/index.ts'
import { AuditUnavailable, type CountingAuditor, countAnonymous, type StoreAuditor } from './auditor.ts'
import { doLater, groupCommit } from './group-commit.ts'
import { type AuditRecord, type AuditRow, type Delivery, toRow } from './record.ts'
import { createIntent, deliverOnce, removeIntents, toDeliveries } from './trail/intents.ts'

export interface AuditorOptions {
  readonly store: Store
  /** `smart.server.audit-failure`: how requests are handled while the store does not accept their records. */
  readonly failure?: 'refuse' | 'allow'
  /** Receives the records that were not stored. They contain no secret and may be logged. */
  readonly onError?: (error: unknown, records: readonly AuditRecord[]) => void
  readonly clock?: () => number
  /** The anonymous requests of one kind and source that are stored in full in a minute; the others are counted. */
  readonly fullRecords?: number
}

/** How long the store is left alone after a failure. */
const REST_MS = 1000
const RETRY_MS = 2000
const REMOVE_MS = 1000

/** Stores concurrent records in one commit, and counts repeated anonymous requests. */
export function createAuditor(options: AuditorOptions): CountingAuditor {
  const { clock = Date.now, fullRecords = 1 } = options
  return countAnonymous(createStoreAuditor(options), { clock, fullRecords })
}

function createStoreAuditor(options: AuditorOptions): StoreAuditor {
  const { store, failure = 'refuse', onError = () => {}, clock = Date.now } = options
  const isOutage = isDatabaseUnavailable
  const rows = groupCommit<AuditRow>({ write: list => store.appendRecords(list), isOutage })
  const deliveries = groupCommit<AuditRow>({ write: list => store.append('audit_event', list), isOutage })
  const intents = groupCommit<Insertable<Schema['audit_intent']>>({
    write: list => store.append('audit_intent', list),
    isOutage,
  })
  const completions = doLater(redeliver, { everyMs: RETRY_MS })
  const completed = doLater<string>(ids => removeIntents(store, ids), { everyMs: REMOVE_MS })
  let away: { readonly until: number; readonly cause: unknown } | undefined

  async function write(attempt: () => Promise<void>): Promise<void> {
    if (away && clock() < away.until) throw away.cause
    try {
      await attempt()
      away = undefined
    } catch (cause) {
      if (isOutage(cause)) away = { until: clock() + REST_MS, cause }
      throw cause
    }
  }

  function refuse(cause: unknown, records: readonly AuditRecord[]): void {
    onError(cause, records)
    if (failure === 'refuse') throw new AuditUnavailable(cause)
  }

  /** A record that the database refuses is logged and dropped: it must not delay the others. */
  async function redeliver(deliveries: readonly Delivery[]): Promise<void> {
    try {
      await deliverOnce(store, deliveries)
    } catch (cause) {
      const [first] = deliveries
      if (isOutage(cause) || !first) throw cause
      if (deliveries.length === 1) return onError(cause, [first.record])
      for (const delivery of deliveries) await redeliver([delivery])
    }
  }

  async function deliver(delivered: readonly Delivery[]): Promise<boolean> {
    try {
      await write(() => deliveries.add(delivered.map(({ id, record }) => toRow(record, id))))
      return true
    } catch (cause) {
      const records = delivered.map(({ record }) => record)
      onError(cause, records)
      return false
    }
  }

  async function record(...records: readonly AuditRecord[]): Promise<void> {
    const made = records.map(one => toRow(one))
    try {
      await write(() => rows.add(made))
    } catch (cause) {
      refuse(cause, records)
    }
  }

  return {
    keeps: true,
    record,
    deliver,
    redeliver,
    async recordIn(trx, ...records) {
      try {
        await (failure === 'allow' ? insertOrSkip(trx, records) : insert(trx, records))
      } catch (cause) {
        refuse(cause, records)
      }
    },
    async prepare() {
      if (failure === 'allow') return
      try {
        if (away && clock() < away.until) throw away.cause
        await store.ping()
      } catch (cause) {
        throw new AuditUnavailable(cause)
      }
    },
    async intend(about) {
      const { id, record: unknown } = createIntent(about)
      try {
        await write(() => intents.add([{ id, at: about.at, record: JSON.stringify(unknown) }]))
        return id
      } catch (cause) {
        refuse(cause, [about])
        return undefined
      }
    },
    async complete(intent, ...records) {
      if (intent === undefined) return record(...records)
      const deliveries = toDeliveries(intent, records)
      if (await deliver(deliveries)) completed.add(intent)
      else completions.add(...deliveries)
    },
    async flush() {
      await completions.flush()
      await completed.flush()
    },
  }
}

async function insert(trx: Transaction<Schema>, records: readonly AuditRecord[]): Promise<void> {
  for (const record of records) await insertRow(trx, toRow(record))
}

const insertRow = prepareInsert('audit_event')

/** A savepoint protects the transaction: PostgreSQL aborts all of it if one statement fails. */
async function insertOrSkip(trx: Transaction<Schema>, records: readonly AuditRecord[]): Promise<void> {
  await sql`savepoint audit`.execute(trx)
  try {
    await insert(trx, records)
  } catch (error) {
    await sql`rollback to savepoint audit`.execute(trx)
    throw error
  } finally {
    await sql`release savepoint audit`.execute(trx)
  }
}
