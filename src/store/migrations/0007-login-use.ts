import type { Migration } from '../migrate.ts'

/** When a login was last used: it ends when nobody has used it for some time. */
export const loginUse: Migration = {
  name: '0007-login-use',
  async up(db) {
    await db.schema.alterTable('login').addColumn('seen_at', 'bigint').execute()
  },
}
