import type { Migration } from '../migrate.ts'

/** A queue of audit records is a file of lines: the position is a number of bytes. */
export const auditQueuePosition: Migration = {
  name: '0032-audit-queue-position',
  async up(db) {
    await db.deleteFrom('audit_queue').execute()
    await db.schema.alterTable('audit_queue').renameColumn('last_id', 'position').execute()
  },
}
