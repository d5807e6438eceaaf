import type { Migration } from '../migrate.ts'

/** What counts the launches at the app server that a network began and has not finished. */
export const launchesOfNetworks: Migration = {
  name: '0010-launches-of-networks',
  async up(db) {
    await db.schema.alterTable('app_launch').addColumn('network_hash', 'text').execute()
    await db.schema
      .createIndex('app_launch_network')
      .on('app_launch')
      .columns(['network_hash', 'expires_at'])
      .execute()
  },
}
