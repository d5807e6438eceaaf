import { type CreateTableBuilder, type Kysely, sql } from 'kysely'
import type { Migration } from '../migrate.ts'
import type { Schema } from '../schema.ts'
import type { Store } from '../store.ts'

/** The first schema: clinicians, clients, keys, and what a launch leaves behind. */
export const tables: Migration = {
  name: '0001-tables',
  async up(db, dialect) {
    await createClinician(db, dialect)
    await createClient(db)
    await createLogin(db)
    await createLaunch(db)
    await createGrant(db)
    await createRevocation(db)
    await createApp(db)
    await createAudit(db, dialect)
  },
}

// One INSERT of the four named columns adds a clinician who can log in (LOGIN-2).
async function createClinician(db: Kysely<Schema>, dialect: Store['dialect']): Promise<void> {
  await db.schema
    .createTable('clinician')
    .addColumn('id', 'text', column => column.primaryKey().notNull().defaultTo(uuid(dialect)))
    .addColumn('username', 'text', column => column.notNull().unique())
    .addColumn('password_hash', 'text', column => column.notNull())
    .addColumn('display_name', 'text', column => column.notNull())
    .addColumn('fhir_user_id', 'text', column => column.notNull())
    .addColumn('disabled', 'boolean', column => column.notNull().defaultTo(sql`false`))
    .execute()
}

/** A random UUID (RFC 9562, version 4) made by the database. SQLite has no function for it. */
function uuid(dialect: Store['dialect']) {
  switch (dialect) {
    case 'postgres':
      return sql`gen_random_uuid()::text`
    case 'sqlite':
      return sql`(lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2) || '-'
        || substr('89ab', 1 + (random() & 3), 1) || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6))))`
  }
}

async function createClient(db: Kysely<Schema>): Promise<void> {
  await db.schema
    .createTable('client')
    .addColumn('client_id', 'text', column => column.primaryKey().notNull())
    .addColumn('name', 'text', column => column.notNull())
    .addColumn('description', 'text')
    .addColumn('logo_url', 'text')
    .addColumn('auth_method', 'text', column => column.notNull())
    .addColumn('secret_hash', 'text')
    .addColumn('jwks', 'text')
    .addColumn('jwks_url', 'text')
    .addColumn('redirect_uris', 'text', column => column.notNull())
    .addColumn('post_logout_redirect_uris', 'text', column => column.notNull().defaultTo('[]'))
    .addColumn('launch_url', 'text')
    .addColumn('scope', 'text', column => column.notNull())
    .addColumn('first_party', 'boolean', column => column.notNull().defaultTo(sql`false`))
    .addColumn('created_at', 'bigint', column => column.notNull())
    .execute()
  await db.schema
    .createTable('signing_key')
    .addColumn('kid', 'text', column => column.primaryKey().notNull())
    .addColumn('generation', 'integer', column => column.notNull().unique())
    .addColumn('public_jwk', 'text', column => column.notNull())
    .addColumn('private_jwk_sealed', 'text', column => column.notNull())
    .addColumn('created_at', 'bigint', column => column.notNull())
    .addColumn('signs_from', 'bigint', column => column.notNull())
    .addColumn('retired_at', 'bigint')
    .execute()
}

async function createLogin(db: Kysely<Schema>): Promise<void> {
  await db.schema
    .createTable('login')
    .addColumn('id_hash', 'text', column => column.primaryKey().notNull())
    .addColumn('clinician_id', 'text', column =>
      column.notNull().references('clinician.id').onDelete('cascade'),
    )
    .$call(withLifetime)
    .execute()
  await index(db, 'login', ['expires_at'])
  await db.schema
    .createTable('login_failure')
    .addColumn('username_address_hash', 'text', column => column.notNull())
    .addColumn('at', 'bigint', column => column.notNull())
    .execute()
  await index(db, 'login_failure', ['username_address_hash', 'at'])
  await index(db, 'login_failure', ['at'])
}

async function createLaunch(db: Kysely<Schema>): Promise<void> {
  await db.schema
    .createTable('launch_token')
    .addColumn('token_hash', 'text', column => column.primaryKey().notNull())
    .addColumn('patient_id', 'text', column => column.notNull())
    .addColumn('encounter_id', 'text')
    .addColumn('need_patient_banner', 'boolean', column => column.notNull())
    .addColumn('client_id', 'text', column => column.notNull())
    .addColumn('clinician_username', 'text', column => column.notNull())
    .addColumn('fhir_base_url', 'text', column => column.notNull())
    .addColumn('launch_id', 'text', column => column.notNull())
    .addColumn('context', 'text')
    .addColumn('used_at', 'bigint')
    .$call(withLifetime)
    .execute()
  await index(db, 'launch_token', ['expires_at'])
  await db.schema
    .createTable('authorization_request')
    .addColumn('id_hash', 'text', column => column.primaryKey().notNull())
    .addColumn('request', 'text', column => column.notNull())
    .$call(withLifetime)
    .execute()
  await index(db, 'authorization_request', ['expires_at'])
}

// A client or clinician that is removed takes its grants, and with them every code and refresh token.
async function createGrant(db: Kysely<Schema>): Promise<void> {
  await db.schema
    .createTable('grant')
    .addColumn('id', 'text', column => column.primaryKey().notNull())
    .addColumn('client_id', 'text', column =>
      column.notNull().references('client.client_id').onDelete('cascade'),
    )
    .addColumn('clinician_id', 'text', column =>
      column.notNull().references('clinician.id').onDelete('cascade'),
    )
    .addColumn('login_id_hash', 'text')
    .addColumn('scope', 'text', column => column.notNull())
    .addColumn('patient_id', 'text')
    .addColumn('encounter_id', 'text')
    .addColumn('need_patient_banner', 'boolean')
    .addColumn('context', 'text')
    .addColumn('auth_time', 'bigint', column => column.notNull())
    .addColumn('created_at', 'bigint', column => column.notNull())
    .addColumn('last_used_at', 'bigint', column => column.notNull())
    .addColumn('revoked_at', 'bigint')
    .execute()
  await index(db, 'grant', ['client_id'])
  await index(db, 'grant', ['clinician_id'])
  await index(db, 'grant', ['last_used_at'])
  await index(db, 'grant', ['revoked_at'])
  await db.schema
    .createTable('authorization_code')
    .addColumn('code_hash', 'text', column => column.primaryKey().notNull())
    .addColumn('grant_id', 'text', column => column.notNull().references('grant.id').onDelete('cascade'))
    .addColumn('redirect_uri', 'text', column => column.notNull())
    .addColumn('code_challenge', 'text', column => column.notNull())
    .addColumn('nonce', 'text')
    .addColumn('expires_at', 'bigint', column => column.notNull())
    .addColumn('used_at', 'bigint')
    .execute()
  await index(db, 'authorization_code', ['grant_id'])
  await index(db, 'authorization_code', ['expires_at'])
  await db.schema
    .createTable('refresh_token')
    .addColumn('token_hash', 'text', column => column.primaryKey().notNull())
    .addColumn('grant_id', 'text', column => column.notNull().references('grant.id').onDelete('cascade'))
    .addColumn('used_at', 'bigint')
    .addColumn('request_hash', 'text')
    .addColumn('successor_hash', 'text')
    .addColumn('successor_sealed', 'text')
    .$call(withLifetime)
    .execute()
  await index(db, 'refresh_token', ['grant_id'])
  await index(db, 'refresh_token', ['expires_at'])
}

// No foreign keys: what was revoked stays known when its client is removed.
async function createRevocation(db: Kysely<Schema>): Promise<void> {
  await db.schema
    .createTable('revocation')
    .addColumn('id', 'text', column => column.primaryKey().notNull())
    .addColumn('revoked_at', 'bigint', column => column.notNull())
    .addColumn('expires_at', 'bigint', column => column.notNull())
    .execute()
  await index(db, 'revocation', ['revoked_at'])
  await index(db, 'revocation', ['expires_at'])
  await db.schema
    .createTable('used_assertion')
    .addColumn('client_id', 'text', column => column.notNull())
    .addColumn('jti_hash', 'text', column => column.notNull())
    .addColumn('expires_at', 'bigint', column => column.notNull())
    .addPrimaryKeyConstraint('used_assertion_key', ['client_id', 'jti_hash'])
    .execute()
  await index(db, 'used_assertion', ['expires_at'])
}

async function createApp(db: Kysely<Schema>): Promise<void> {
  await db.schema
    .createTable('app_key')
    .addColumn('generation', 'integer', column => column.primaryKey().notNull())
    .addColumn('public_jwk', 'text', column => column.notNull())
    .addColumn('private_jwk_sealed', 'text', column => column.notNull())
    .addColumn('created_at', 'bigint', column => column.notNull())
    .execute()
  await db.schema
    .createTable('app_launch')
    .addColumn('state_hash', 'text', column => column.primaryKey().notNull())
    .addColumn('browser_hash', 'text', column => column.notNull())
    .addColumn('issuer', 'text', column => column.notNull())
    .addColumn('fhir_base_url', 'text', column => column.notNull())
    .addColumn('nonce', 'text', column => column.notNull())
    .addColumn('code_verifier_sealed', 'text', column => column.notNull())
    .$call(withLifetime)
    .execute()
  await index(db, 'app_launch', ['expires_at'])
  await db.schema
    .createTable('app_session')
    .addColumn('id_hash', 'text', column => column.primaryKey().notNull())
    .addColumn('session_id', 'text', column => column.notNull().unique())
    .addColumn('fhir_base_url', 'text', column => column.notNull())
    .addColumn('issuer', 'text', column => column.notNull())
    .addColumn('subject', 'text')
    .addColumn('fhir_user', 'text')
    .addColumn('name', 'text')
    .addColumn('patient_id', 'text', column => column.notNull())
    .addColumn('encounter_id', 'text')
    .addColumn('need_patient_banner', 'boolean', column => column.notNull())
    .addColumn('scope', 'text', column => column.notNull())
    .addColumn('tokens_sealed', 'text', column => column.notNull())
    .addColumn('token_version', 'integer', column => column.notNull())
    .addColumn('renew_at', 'bigint', column => column.notNull())
    .addColumn('renewing_until', 'bigint')
    .addColumn('created_at', 'bigint', column => column.notNull())
    .addColumn('max_expires_at', 'bigint', column => column.notNull())
    .addColumn('idle_expires_at', 'bigint', column => column.notNull())
    .addColumn('renewable_until', 'bigint')
    .addColumn('launch_id', 'text')
    .execute()
  await index(db, 'app_session', ['idle_expires_at'])
}

// No foreign keys: what was done stays known when the client or the clinician is removed.
async function createAudit(db: Kysely<Schema>, dialect: Store['dialect']): Promise<void> {
  await db.schema
    .createTable('audit_event')
    .addColumn('id', dialect === 'sqlite' ? 'integer' : 'bigserial', column => column.primaryKey())
    .addColumn('at', 'bigint', column => column.notNull())
    .addColumn('server', 'text', column => column.notNull())
    .addColumn('kind', 'text', column => column.notNull())
    .addColumn('interaction', 'text')
    .addColumn('allowed', 'boolean', column => column.notNull())
    .addColumn('status', 'integer', column => column.notNull())
    .addColumn('method', 'text')
    .addColumn('request', 'text')
    .addColumn('resource_type', 'text')
    .addColumn('resource_id', 'text')
    .addColumn('patient_id', 'text')
    .addColumn('patients', 'text')
    .addColumn('client_id', 'text')
    .addColumn('subject', 'text')
    .addColumn('fhir_user', 'text')
    .addColumn('decided_by', 'text')
    .addColumn('reason', 'text')
    .addColumn('launch_id', 'text')
    .addColumn('request_id', 'text')
    .addColumn('address', 'text')
    .execute()
  await index(db, 'audit_event', ['at'])
  await index(db, 'audit_event', ['patient_id', 'at'])
  await db.schema
    .createIndex('audit_event_several')
    .on('audit_event')
    .column('at')
    .where(sql<boolean>`patients is not null`)
    .execute()
  await index(db, 'audit_event', ['client_id', 'at'])
  await index(db, 'audit_event', ['launch_id', 'at'])
}

function withLifetime<Table extends string>(table: CreateTableBuilder<Table>) {
  return table
    .addColumn('created_at', 'bigint', column => column.notNull())
    .addColumn('expires_at', 'bigint', column => column.notNull())
}

async function index(db: Kysely<Schema>, table: string, columns: readonly string[]): Promise<void> {
  await db.schema
    .createIndex(`${table}_${columns.join('_')}`)
    .on(table)
    .columns([...columns])
    .execute()
}
