import type { Migration } from '../migrate.ts'

/** What counts the requests and clients that strangers left behind. */
export const limitsOfStrangers: Migration = {
  name: '0009-limits-of-strangers',
  async up(db) {
    await db.schema.alterTable('authorization_request').addColumn('network_hash', 'text').execute()
    await db.schema
      .createIndex('authorization_request_network')
      .on('authorization_request')
      .columns(['network_hash', 'expires_at'])
      .execute()
    await db.schema.createIndex('client_approved').on('client').column('approved').execute()
  },
}
