import type { Migration } from '../migrate.ts'

/** The position of each feed of audit records, and the records that its receiver refused. */
export const auditFeeds: Migration = {
  name: '0027-audit-feeds',
  async up(db) {
    await db.schema
      .createTable('audit_cursor')
      .addColumn('feed', 'text', column => column.primaryKey())
      .addColumn('last_id', 'bigint', column => column.notNull())
      .addColumn('moved_at', 'bigint', column => column.notNull())
      .execute()
    await db.schema
      .createTable('audit_refused')
      .addColumn('feed', 'text', column => column.notNull())
      .addColumn('audit_id', 'bigint', column => column.notNull())
      .addColumn('refused_at', 'bigint', column => column.notNull())
      .addColumn('reason', 'text', column => column.notNull())
      .addPrimaryKeyConstraint('audit_refused_key', ['feed', 'audit_id'])
      .execute()
  },
}
