import type { Migration } from '../migrate.ts'

/** An attempt counts as a failure before its password is checked; a successful one removes its rows. */
export const reservedLoginAttempts: Migration = {
  name: '0040-reserved-login-attempts',
  async up(db) {
    await db.schema.alterTable('login_failure').addColumn('attempt', 'text').execute()
    await db.schema.createIndex('login_failure_attempt').on('login_failure').column('attempt').execute()
  },
}
