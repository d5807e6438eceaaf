import { randomUUIDv7 } from 'node:crypto'
import { type AuditRecord, type Delivery, doLater, type FhirAudit } from '../../audit/index.ts'
import type { Database } from './database.ts'

/**
 * Audit records in `fhir.db`, written in the transaction of the change that they are about and then delivered to the
 * trail, which is another database. Whatever happens in between, a change that is kept has its record.
 */
export interface Outbox {
  /** Adds records; to be called within the transaction of their change. */
  add(records: readonly AuditRecord[]): readonly Delivery[]
  /** Takes records back that others have taken the place of, in the transaction that adds those. */
  withdraw(deliveries: readonly Delivery[]): void
  /** Delivers records whose transaction is durable. Never rejects: what cannot be delivered now is delivered later. */
  deliver(deliveries: readonly Delivery[]): Promise<void>
  /** Delivers and removes what it can; to be called before the data are closed. */
  flush(): Promise<void>
}

const RETRY_MS = 2000
const REMOVE_MS = 1000

/** What an earlier process left behind is delivered now. */
export function openOutbox(database: Database, audit: Pick<FhirAudit, 'deliver' | 'redeliver'>): Outbox {
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
  undelivered.add(...readAll(database))
  void undelivered.flush()

  return {
    add(records) {
      const deliveries = records.map(record => ({ id: randomUUIDv7(), record }))
      for (const { id, record } of deliveries) insert.run(id, JSON.stringify(record))
      return deliveries
    },
    withdraw: deliveries => removeAll(deliveries.map(({ id }) => id)),
    async deliver(deliveries) {
      if (deliveries.length === 0) return
      if (await audit.deliver(deliveries)) delivered.add(...deliveries.map(({ id }) => id))
      else undelivered.add(...deliveries)
    },
    async flush() {
      await undelivered.flush()
      await delivered.flush()
    },
  }
}

function readAll(database: Database): readonly Delivery[] {
  return database
    .rows('SELECT id, record FROM audit_outbox ORDER BY id', [])
    .map(([id, record]) => ({ id: String(id), record: JSON.parse(String(record)) }))
}
