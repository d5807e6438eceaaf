import { sql } from 'kysely'
import type { Migration } from '../migrate.ts'

/**
 * Whether an administrator vouches for a client. Of the clients that are there already, those with an id that the
 * registration endpoint made (a UUID) registered themselves.
 */
export const clientApproval: Migration = {
  name: '0002-client-approval',
  async up(db) {
    await db.schema
      .alterTable('client')
      .addColumn('approved', 'boolean', column => column.notNull().defaultTo(sql`true`))
      .execute()
    await db
      .updateTable('client')
      .set({ approved: false })
      .where('client_id', 'like', '________-____-4___-____-____________')
      .where('first_party', '=', false)
      .execute()
  },
}
