import { sql } from 'kysely'
import type { Migration } from '../migrate.ts'

/** For the launches of one browser, and for the successors of refresh tokens that the sweeper removes. */
export const launchAndSuccessorIndexes: Migration = {
  name: '0005-launch-and-successor-indexes',
  async up(db) {
    await db.schema.createIndex('app_launch_browser_hash').on('app_launch').column('browser_hash').execute()
    await db.schema
      .createIndex('refresh_token_successor')
      .on('refresh_token')
      .column('used_at')
      .where(sql<boolean>`successor_sealed is not null`)
      .execute()
  },
}
