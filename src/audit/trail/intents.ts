import { randomUUID } from 'node:crypto'
import { type AuditRecord, OUTCOME_UNKNOWN } from '../../audit-record/index.ts'
import { MINUTE_MS } from '../../core/index.ts'
import { type JobOptions, repeatInOneProcess, type Store } from '../../store/index.ts'
import { toRow } from '../to-row.ts'

/** A record that is durable elsewhere. Its id is in the trail once. */
export interface Delivery {
  readonly id: string
  readonly record: AuditRecord
}

/** Longer than a change can take, at an upstream or in a batch. */
export const UNKNOWN_AFTER_MS = 10 * MINUTE_MS

const MAX_AT_ONCE = 500

const UNKNOWN_REASON = 'Outcome unknown: the server stopped before it could record the response'

export function createIntent(record: AuditRecord): Delivery {
  return { id: randomUUID(), record: withUnknownOutcome(record) }
}

export function withUnknownOutcome(record: AuditRecord): AuditRecord {
  return { ...record, status: OUTCOME_UNKNOWN, reason: UNKNOWN_REASON }
}

/** The records of a finished change replace its intent, by id. */
export function toDeliveries(intentId: string, records: readonly AuditRecord[]): readonly Delivery[] {
  return records.map((record, at) => ({ id: at === 0 ? intentId : `${intentId}.${at}`, record }))
}

/** The delivery id of a record whose outcome was reported as unknown before it was known. */
const nameKnown = (id: string) => `${id}.known`

/**
 * Adds deliveries that may already be in the trail, each once. A record that was meanwhile reported as unknown stays:
 * nothing that is in the trail changes.
 */
export async function deliverOnce({ db }: Store, deliveries: readonly Delivery[]): Promise<void> {
  const ids = deliveries.map(({ id }) => id)
  await db.transaction().execute(async trx => {
    const found = await trx
      .selectFrom('audit_event')
      .select(['delivery_id', 'status'])
      .where('delivery_id', 'in', [...ids, ...ids.map(nameKnown)])
      .execute()
    const statuses = new Map(found.map(row => [row.delivery_id, row.status]))
    const rows = deliveries
      .map(({ id, record }) =>
        toRow(
          record,
          statuses.get(id) === OUTCOME_UNKNOWN && record.status !== OUTCOME_UNKNOWN ? nameKnown(id) : id,
        ),
      )
      .filter(row => !statuses.has(row.delivery_id ?? null))
    // On PostgreSQL a row that conflicts takes an id of the trail: only that of a simultaneous delivery does.
    if (rows.length > 0)
      await trx
        .insertInto('audit_event')
        .values(rows)
        .onConflict(conflict => conflict.doNothing())
        .execute()
    await trx.deleteFrom('audit_intent').where('id', 'in', ids).execute()
  })
}

/**
 * Reports changes of any instance that were announced and never completed, with an unknown outcome. Safe on several
 * instances at once, and for an intent whose completion is already in the trail.
 */
export async function reportUnknownOutcomes({ db }: Store, now: number): Promise<number> {
  let reported = 0
  for (;;) {
    const intents = await db
      .selectFrom('audit_intent')
      .selectAll()
      .where('at', '<', now - UNKNOWN_AFTER_MS)
      .limit(MAX_AT_ONCE)
      .execute()
    if (intents.length === 0) return reported
    reported += await db.transaction().execute(async trx => {
      const { numInsertedOrUpdatedRows = 0n } = await trx
        .insertInto('audit_event')
        .values(intents.map(({ id, record }) => toRow(JSON.parse(record), id)))
        .onConflict(conflict => conflict.doNothing())
        .executeTakeFirst()
      const ids = intents.map(({ id }) => id)
      await trx.deleteFrom('audit_intent').where('id', 'in', ids).execute()
      return Number(numInsertedOrUpdatedRows)
    })
  }
}

export async function removeIntents({ db }: Store, ids: readonly string[]): Promise<void> {
  for (let at = 0; at < ids.length; at += MAX_AT_ONCE)
    await db
      .deleteFrom('audit_intent')
      .where('id', 'in', ids.slice(at, at + MAX_AT_ONCE))
      .execute()
}

export function startReportingUnknown(store: Store, options: JobOptions): { stop(): Promise<void> } {
  return repeatInOneProcess(store, 'audit-unknown', { everyMs: MINUTE_MS, ...options }, now =>
    reportUnknownOutcomes(store, now),
  )
}
