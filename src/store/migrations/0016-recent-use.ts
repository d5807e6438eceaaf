import type { Migration } from '../migrate.ts'

/** The patients and apps that a clinician opened last. */
export const recentUse: Migration = {
  name: '0016-recent-use',
  async up(db) {
    await db.schema
      .createTable('recent_use')
      .addColumn('clinician_id', 'text', column =>
        column.notNull().references('clinician.id').onDelete('cascade'),
      )
      .addColumn('kind', 'text', column => column.notNull())
      .addColumn('item_id', 'text', column => column.notNull())
      .addColumn('used_at', 'bigint', column => column.notNull())
      .addPrimaryKeyConstraint('recent_use_key', ['clinician_id', 'kind', 'item_id'])
      .execute()
  },
}
