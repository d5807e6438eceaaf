import { sql } from 'kysely'
import type { Migration } from '../migrate.ts'

/** Sign-in with an identity provider: links of accounts, pending sign-ins, and details of logins for id_tokens and logouts. */
export const loginProviders: Migration = {
  name: '0018-login-providers',
  async up(db) {
    const admin = (table: 'clinician' | 'login') =>
      db.schema
        .alterTable(table)
        .addColumn('admin', 'boolean', column => column.notNull().defaultTo(sql`false`))
        .execute()
    await admin('clinician')
    await admin('login')
    for (const name of ['issuer', 'subject', 'sid', 'acr', 'amr', 'id_token_sealed'])
      await db.schema.alterTable('login').addColumn(name, 'text').execute()
    await db.schema.alterTable('login').addColumn('auth_time', 'bigint').execute()
    for (const name of ['acr', 'amr']) await db.schema.alterTable('grant').addColumn(name, 'text').execute()
    await db.schema.createIndex('login_issuer_subject').on('login').columns(['issuer', 'subject']).execute()
    await db.schema.createIndex('login_issuer_sid').on('login').columns(['issuer', 'sid']).execute()
    await db.schema
      .createTable('clinician_link')
      .addColumn('issuer', 'text', column => column.notNull())
      .addColumn('subject', 'text', column => column.notNull())
      .addColumn('clinician_id', 'text', column =>
        column.notNull().references('clinician.id').onDelete('cascade'),
      )
      .addColumn('provisioned', 'boolean', column => column.notNull())
      .addColumn('created_at', 'bigint', column => column.notNull())
      .addPrimaryKeyConstraint('clinician_link_key', ['issuer', 'subject'])
      .execute()
    await db.schema
      .createTable('pending_sign_in')
      .addColumn('state_hash', 'text', column => column.primaryKey())
      .addColumn('browser_hash', 'text', column => column.notNull())
      .addColumn('request_sealed', 'text', column => column.notNull())
      .addColumn('network_hash', 'text', column => column.notNull())
      .addColumn('expires_at', 'bigint', column => column.notNull())
      .execute()
    await db.schema
      .createIndex('pending_sign_in_network')
      .on('pending_sign_in')
      .columns(['network_hash', 'expires_at'])
      .execute()
  },
}
