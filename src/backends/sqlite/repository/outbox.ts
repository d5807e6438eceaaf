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
 * Audit records in `fhir.db`, written in the transaction of the change that they are about and then delivered to the
 * trail, which is another database. Whatever happens in between, a change that is kept has its record.
 */
export interface Outbox {
  /** Adds records; to be called within the transaction of their change. */
  add(records: readonly AuditRecord[]): readonly Delivery[]
  /**
   * Puts the records of a change in the place of those that announced it, and delivers them. Never rejects, for the
   * change is made: what cannot be written now is written later.
   */
  complete(announced: readonly Delivery[], records: readonly AuditRecord[]): Promise<void>
  /** Delivers records whose transaction is durable. Never rejects: what cannot be delivered now is delivered later. */
  deliver(deliveries: readonly Delivery[]): Promise<void>
  /** Delivers and removes what it can; to be called before the data are closed. */
  close(): Promise<void>
}

const RETRY_MS = 2000
const REMOVE_MS = 1000

/** What an earlier process left behind is delivered at the start, and what another one leaves behind some minutes later. */
export function openOutbox(
  database: Database,
  audit: Pick<FhirAudit, 'deliver' | 'redeliver'>,
  clock: () => number,
): Outbox {
  const insert = database.prepare('INSERT INTO audit_outbox VALUES (?, ?)')
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
    undelivered.add(...readLeft(database, clock()))
    void undelivered.flush()
  }
  collect()
  const collecting = setInterval(collect, UNKNOWN_AFTER_MS)
  collecting.unref()

  return {
    add(records) {
      const deliveries = deliveriesOf(records)
      insertAll(deliveries)
      return deliveries
    },
    async complete(announced, records) {
      completions.add({ announced, deliveries: deliveriesOf(records) })
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

function deliveriesOf(records: readonly AuditRecord[]): readonly Delivery[] {
  return records.map(record => ({ id: randomUUIDv7(), record }))
}

/** A batch that was begun may still be under way in another process on the same file. */
function readLeft(database: Database, now: number): readonly Delivery[] {
  return database
    .rows('SELECT id, record FROM audit_outbox ORDER BY id', [])
    .map(([id, record]): Delivery => ({ id: String(id), record: JSON.parse(String(record)) }))
    .filter(({ record: { status, at } }) => status !== OUTCOME_UNKNOWN || at < now - UNKNOWN_AFTER_MS)
}
