import { sql } from 'kysely'
import type { Migration } from '../migrate.ts'

/** Exceptions for clients that are older than PKCE, or that the `iss` response parameter confuses. */
export const olderClients: Migration = {
  name: '0006-older-clients',
  async up(db) {
    for (const name of ['pkce_required', 'iss_parameter'])
      await db.schema
        .alterTable('client')
        .addColumn(name, 'boolean', column => column.notNull().defaultTo(sql`true`))
        .execute()
  },
}
