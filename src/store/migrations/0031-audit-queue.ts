import type { Migration } from '../migrate.ts'

/** The last record that was moved from each queue of audit records to the trail. */
export const auditQueue: Migration = {
  name: '0031-audit-queue',
  async up(db) {
    await db.schema
      .createTable('audit_queue')
      .addColumn('name', 'text', column => column.primaryKey())
      .addColumn('last_id', 'bigint', column => column.notNull())
      .execute()
  },
}
