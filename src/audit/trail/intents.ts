import { randomUUID } from 'node:crypto'
import type { Store } from '../../store/index.ts'
import { type Delivery, OUTCOME_UNKNOWN, UNKNOWN_AFTER_MS } from '../delivery.ts'
import { type AuditRecord, toRow } from '../record.ts'

const MOST_AT_ONCE = 500

const UNKNOWN_REASON = 'Outcome unknown: the server stopped before it could record the response'

/** The announcement of a change, before it is made. */
export function createIntent(record: AuditRecord): Delivery {
  return { id: randomUUID(), record: withUnknownOutcome(record) }
}

export function withUnknownOutcome(record: AuditRecord): AuditRecord {
  return { ...record, status: OUTCOME_UNKNOWN, reason: UNKNOWN_REASON }
}

/** The records of a finished change take the place of its intent, by its id. */
export function deliveriesOf(intentId: string, records: readonly AuditRecord[]): readonly Delivery[] {
  return records.map((record, at) => ({ id: at === 0 ? intentId : `${intentId}.${at}`, record }))
}

/**
 * Adds deliveries that may be in the trail already, each once. A record that was reported as unknown meanwhile is
 * replaced by what is known now.
 */
export async function deliverOnce({ db }: Store, deliveries: readonly Delivery[]): Promise<void> {
  const ids = deliveries.map(({ id }) => id)
  await db.transaction().execute(async trx => {
    await trx
      .deleteFrom('audit_event')
      .where('delivery_id', 'in', ids)
      .where('status', '=', OUTCOME_UNKNOWN)
      .execute()
    await trx
      .insertInto('audit_event')
      .values(deliveries.map(({ id, record }) => toRow(record, id)))
      .onConflict(conflict => conflict.doNothing())
      .execute()
    await trx.deleteFrom('audit_intent').where('id', 'in', ids).execute()
  })
}

/**
 * Reports changes that were announced and never completed, by whichever instance, as records whose outcome is not
 * known. Safe on several instances at once, and for an intent whose completion is in the trail already.
 */
export async function reportUnknownOutcomes({ db }: Store, now: number): Promise<number> {
  let reported = 0
  for (;;) {
    const intents = await db
      .selectFrom('audit_intent')
      .selectAll()
      .where('at', '<', now - UNKNOWN_AFTER_MS)
      .limit(MOST_AT_ONCE)
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

/** Removes the intents of changes that are in the trail. */
export async function removeIntents({ db }: Store, ids: readonly string[]): Promise<void> {
  for (let at = 0; at < ids.length; at += MOST_AT_ONCE)
    await db
      .deleteFrom('audit_intent')
      .where('id', 'in', ids.slice(at, at + MOST_AT_ONCE))
      .execute()
}
