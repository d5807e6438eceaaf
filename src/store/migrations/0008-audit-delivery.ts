import { sql } from 'kysely'
import type { Migration } from '../migrate.ts'

/**
 * Audit records that were durable elsewhere before they reached the trail have a delivery id, so that none is added
 * twice. An intent is the durable announcement of a change that another server is asked to make.
 */
export const auditDelivery: Migration = {
  name: '0008-audit-delivery',
  async up(db) {
    await db.schema.alterTable('audit_event').addColumn('delivery_id', 'text').execute()
    await db.schema
      .createIndex('audit_event_delivery_id')
      .unique()
      .on('audit_event')
      .column('delivery_id')
      .where(sql<boolean>`delivery_id is not null`)
      .execute()
    await db.schema
      .createTable('audit_intent')
      .addColumn('id', 'text', column => column.primaryKey())
      .addColumn('at', 'bigint', column => column.notNull())
      .addColumn('record', 'text', column => column.notNull())
      .execute()
  },
}
