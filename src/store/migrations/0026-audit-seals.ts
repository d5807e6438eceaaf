import type { Migration } from '../migrate.ts'

/** The access token of a record, and the hash chain that reveals changes of the audit trail. */
export const auditSeals: Migration = {
  name: '0026-audit-seals',
  async up(db) {
    await db.schema.alterTable('audit_event').addColumn('token_id', 'text').execute()
    await db.schema
      .createTable('audit_seal')
      .addColumn('number', 'bigint', column => column.primaryKey())
      .addColumn('last_id', 'bigint', column => column.notNull())
      .addColumn('records', 'integer', column => column.notNull())
      .addColumn('newest_at', 'bigint', column => column.notNull())
      .addColumn('hash', 'text', column => column.notNull())
      .addColumn('hash_sealed', 'text', column => column.notNull())
      .addColumn('checkpoint_sealed', 'text')
      .execute()
    await db.schema.createIndex('audit_seal_newest_at').on('audit_seal').column('newest_at').execute()
  },
}
