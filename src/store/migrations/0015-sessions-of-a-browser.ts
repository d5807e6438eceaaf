import { sql } from 'kysely'
import type { Migration } from '../migrate.ts'

/** Several sessions in one browser, and launches in a frame. */
export const sessionsOfABrowser: Migration = {
  name: '0015-sessions-of-a-browser',
  async up(db) {
    await db.schema.alterTable('app_session').addColumn('ended_at', 'bigint').execute()
    await db.schema
      .alterTable('app_session')
      .addColumn('similar_name', 'boolean', column => column.notNull().defaultTo(sql`false`))
      .execute()
    await db.schema.alterTable('app_launch').addColumn('launch_sealed', 'text').execute()
  },
}
