import type { Migration } from '../migrate.ts'

/** Anonymous requests that repeat one another are counted in one audit record. */
export const auditRepeats: Migration = {
  name: '0003-audit-repeats',
  async up(db) {
    await db.schema.alterTable('audit_event').addColumn('repeats', 'integer').execute()
  },
}
