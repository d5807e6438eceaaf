import type { Migration } from '../migrate.ts'

/** The key of the ids of AuditEvents. */
export const auditKey: Migration = {
  name: '0041-audit-key',
  async up(db) {
    await db.schema
      .createTable('audit_key')
      .addColumn('purpose', 'text', column => column.primaryKey())
      .addColumn('key', 'text', column => column.notNull())
      .execute()
  },
}
