import type { Migration } from '../migrate.ts'

/** The sweep and the count of pending sign-ins read those that expire first. */
export const pendingSignInExpiry: Migration = {
  name: '0028-pending-sign-in-expiry',
  async up(db) {
    await db.schema
      .createIndex('pending_sign_in_expires_at')
      .on('pending_sign_in')
      .column('expires_at')
      .execute()
  },
}
