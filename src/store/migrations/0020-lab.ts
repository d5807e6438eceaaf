import { sql } from 'kysely'
import type { Migration } from '../migrate.ts'

/** The settings of lab launches, and clients that expire. */
export const lab: Migration = {
  name: '0020-lab',
  async up(db) {
    await db.schema.alterTable('launch_token').addColumn('lab', 'text').execute()
    await db.schema.alterTable('grant').addColumn('lab', 'text').execute()
    await db.schema.alterTable('client').addColumn('expires_at', 'bigint').execute()
    await db.schema
      .createIndex('grant_lab')
      .on('grant')
      .column('id')
      .where(sql.ref('lab'), 'is not', null)
      .execute()
    await db.schema.createIndex('client_expires_at').on('client').column('expires_at').execute()
  },
}
