import { randomUUIDv7 } from 'node:crypto'
import {
  type AuditRecord,
  type Delivery,
  doLater,
  type FhirAudit,
  OUTCOME_UNKNOWN,
  UNKNOWN_AFTER_MS,
} from '../../../audit/index.ts'
import type { Database } from './database.ts'

/**
 * Audit records in `fhir.db`. They are written in the transaction of their change and then delivered to the audit trail,
 * which is another database: every stored change has its record, even after a crash.
 */
export interface Outbox {
  /** Adds records. Call it within the transaction of their change. */
  add(records: readonly AuditRecord[]): readonly Delivery[]
  /**
   * Replaces the records that announced a change, and delivers the new ones. Never rejects, because the change is
   * committed: it retries later if necessary.
   */
  complete(announced: readonly Delivery[], records: readonly AuditRecord[]): Promise<void>
  /** Delivers records whose transaction is durable. Never rejects: it retries later if necessary. */
  deliver(deliveries: readonly Delivery[]): Promise<void>
  /** Delivers and removes as many records as possible. Call it before the data are closed. */
  close(): Promise<void>
}

const RETRY_MS = 2000
const REMOVE_MS = 1000

/** Also delivers the records that other processes left: at the start, and regularly. */
export function openOutbox(
  database: Database,
  audit: Pick<FhirAudit, 'deliver' | 'redeliver'>,
  clock: () => number,
): Outbox {
  const insert = database.prepare('INSERT INTO audit_outbox (id, record) VALUES (?, ?)')
  const remove = database.prepare('DELETE FROM audit_outbox WHERE id = ?')

  function removeAll(ids: readonly string[]): void {
    for (const id of ids) remove.run(id)
  }

  const delivered = doLater<string>(ids => database.group(() => removeAll(ids)), { everyMs: REMOVE_MS })
  const undelivered = doLater<Delivery>(
    async deliveries => {
      await audit.redeliver(deliveries)
      delivered.add(...deliveries.map(({ id }) => id))
    },
    { everyMs: RETRY_MS },
  )
  const completions = doLater<Completion>(
    async items => {
      await replace(items)
      for (const { deliveries } of items) await deliver(deliveries)
    },
    { everyMs: RETRY_MS },
  )

  function insertAll(deliveries: readonly Delivery[]): void {
    for (const { id, record } of deliveries) insert.run(id, JSON.stringify(record))
  }

  function replace(completed: readonly Completion[]): Promise<void> {
    return database.group(() =>
      database.transaction(() => {
        for (const { announced, deliveries } of completed) {
          removeAll(announced.map(({ id }) => id))
          insertAll(deliveries)
        }
      }),
    )
  }

  async function deliver(deliveries: readonly Delivery[]): Promise<void> {
    if (deliveries.length === 0) return
    if (await audit.deliver(deliveries)) delivered.add(...deliveries.map(({ id }) => id))
    else undelivered.add(...deliveries)
  }

  function collect(): void {
    undelivered.add(...readUndelivered(database, clock()))
    void undelivered.flush()
  }
  collect()
  const collecting = setInterval(collect, UNKNOWN_AFTER_MS)
  collecting.unref()

  return {
    add(records) {
      const deliveries = toDeliveries(records)
      insertAll(deliveries)
      return deliveries
    },
    async complete(announced, records) {
      completions.add({ announced, deliveries: toDeliveries(records) })
      await completions.flush()
    },
    deliver,
    async close() {
      clearInterval(collecting)
      await completions.flush()
      await undelivered.flush()
      await delivered.flush()
    },
  }
}

interface Completion {
  readonly announced: readonly Delivery[]
  readonly deliveries: readonly Delivery[]
}

function toDeliveries(records: readonly AuditRecord[]): readonly Delivery[] {
  return records.map(record => ({ id: randomUUIDv7(), record }))
}

/** Without recent records of unknown outcome: their batch may still be running in another process. */
function readUndelivered(database: Database, now: number): readonly Delivery[] {
  return database
    .rows('SELECT id, record FROM audit_outbox ORDER BY id', [])
    .map(([id, record]): Delivery => ({ id: String(id), record: JSON.parse(String(record)) }))
    .filter(({ record: { status, at } }) => status !== OUTCOME_UNKNOWN || at < now - UNKNOWN_AFTER_MS)
}
