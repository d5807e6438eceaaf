import { type Kysely, sql } from 'kysely'
import type { Migration } from '../migrate.ts'
import type { Schema } from '../schema.ts'

/**
 * Clients that an administrator disables, values that administrators set for all processes at run time, and indexes of what
 * belongs to a client or a clinician.
 */
export const administration: Migration = {
  name: '0024-administration',
  async up(db) {
    await db.schema
      .alterTable('client')
      .addColumn('disabled', 'boolean', column => column.notNull().defaultTo(sql`false`))
      .execute()
    await db.schema.alterTable('client').addColumn('enabled_at', 'bigint').execute()
    await db.schema
      .createTable('runtime_value')
      .addColumn('name', 'text', column => column.primaryKey().notNull())
      .addColumn('value', 'text', column => column.notNull())
      .addColumn('changed_at', 'bigint', column => column.notNull())
      .addColumn('expires_at', 'bigint')
      .execute()
    await indexGrants(db)
    for (const table of ['login', 'clinician_link'] as const)
      await db.schema.createIndex(`${table}_clinician_id`).on(table).column('clinician_id').execute()
  },
}

/** The columns of a page's order follow the column of its filter. */
async function indexGrants(db: Kysely<Schema>): Promise<void> {
  for (const column of ['client_id', 'clinician_id'] as const) {
    await db.schema.dropIndex(`grant_${column}`).execute()
    await db.schema
      .createIndex(`grant_${column}_created_at`)
      .on('grant')
      .columns([column, 'created_at', 'id'])
      .execute()
  }
}
