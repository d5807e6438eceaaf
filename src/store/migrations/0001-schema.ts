import type { Migration } from '../migration.ts'
import type { Schema } from '../schema.ts'
import type { Store } from '../store.ts'

type Dialect = Store['dialect']

/** All tables. `Schema` describes their columns. */
export const schema: Migration = {
  name: '0001-schema',
  needs: '0001-schema',
  list(dialect) {
    const { uuid, number, order } = DIALECTS[dialect]
    return [...listTables(uuid, number), ...listIndexes(order), ...listTriggers(dialect)]
  },
}

const DIALECTS = {
  sqlite: {
    // A random UUID (RFC 9562, version 4). SQLite has no function for it.
    uuid: `(lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2) || '-'
        || substr('89ab', 1 + (random() & 3), 1) || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6))))`,
    number: 'integer',
    // Every index of SQLite ends with the rowid, which is the id.
    order: 'at',
  },
  postgres: { uuid: 'gen_random_uuid()::text', number: 'bigserial', order: 'at, id' },
} as const satisfies Readonly<Record<Dialect, object>>

/** One INSERT of the four named columns adds a clinician who can log in (LOGIN-2). */
const listTables = (uuid: string, number: string): readonly string[] => [
  `create table clinician (
    id text primary key not null default ${uuid},
    username text not null unique,
    password_hash text not null,
    display_name text not null,
    fhir_user_id text not null,
    disabled boolean default false not null,
    admin boolean default false not null,
    access_version integer default 0 not null,
    for_loopback boolean default false not null,
    must_change_password boolean default false not null
  )`,
  `create table account_related_person (
    clinician_id text not null references clinician (id) on delete cascade,
    related_person_id text not null,
    constraint account_related_person_key primary key (clinician_id, related_person_id)
  )`,
  `create table clinician_link (
    issuer text not null,
    subject text not null,
    clinician_id text not null references clinician (id) on delete cascade,
    provisioned boolean not null,
    created_at bigint not null,
    constraint clinician_link_key primary key (issuer, subject)
  )`,
  `create table client (
    client_id text primary key not null,
    name text not null,
    description text,
    logo_url text,
    auth_method text not null,
    secret_hash text,
    jwks text,
    jwks_url text,
    redirect_uris text not null,
    post_logout_redirect_uris text default '[]' not null,
    launch_url text,
    scope text not null,
    first_party boolean default false not null,
    created_at bigint not null,
    approved boolean default true not null,
    pkce_required boolean default true not null,
    iss_parameter boolean default true not null,
    expires_at bigint,
    disabled boolean default false not null,
    enabled_at bigint,
    for_loopback boolean default false not null
  )`,
  `create table client_origin (
    client_id text not null references client (client_id) on delete cascade,
    origin text not null,
    constraint client_origin_key primary key (client_id, origin)
  )`,
  `create table access_change (
    id ${number} primary key,
    clinician_id text,
    client_id text
  )`,
  `create table signing_key (
    kid text primary key not null,
    generation integer not null unique,
    public_jwk text not null,
    private_jwk_sealed text not null,
    created_at bigint not null,
    signs_from bigint not null,
    retired_at bigint
  )`,
  `create table login (
    id_hash text primary key not null,
    clinician_id text not null references clinician (id) on delete cascade,
    created_at bigint not null,
    expires_at bigint not null,
    seen_at bigint,
    admin boolean default false not null,
    issuer text,
    subject text,
    sid text,
    acr text,
    amr text,
    id_token_sealed text,
    auth_time bigint,
    browser text,
    address text,
    account_mark text default '' not null,
    basis text default '' not null
  )`,
  `create table login_failure (
    username_address_hash text not null,
    at bigint not null,
    attempt text
  )`,
  `create table pending_sign_in (
    state_hash text primary key,
    browser_hash text not null,
    request_sealed text not null,
    network_hash text not null,
    expires_at bigint not null
  )`,
  `create table pending_login (
    id_hash text primary key not null,
    state_sealed text not null,
    network_hash text not null,
    expires_at bigint not null
  )`,
  `create table factor (
    id text primary key not null default ${uuid},
    clinician_id text not null references clinician (id) on delete cascade,
    kind text not null,
    name text not null,
    secret_sealed text,
    last_step bigint,
    credential_id text unique,
    public_key text,
    sign_count bigint,
    transports text,
    created_at bigint not null,
    used_at bigint
  )`,
  `create table recovery_code (
    clinician_id text not null references clinician (id) on delete cascade,
    code_hash text not null,
    constraint recovery_code_key primary key (clinician_id, code_hash)
  )`,
  `create table recent_use (
    clinician_id text not null references clinician (id) on delete cascade,
    kind text not null,
    item_id text not null,
    used_at bigint not null,
    constraint recent_use_key primary key (clinician_id, kind, item_id)
  )`,
  `create table launch_token (
    token_hash text primary key not null,
    patient_id text not null,
    encounter_id text,
    need_patient_banner boolean not null,
    client_id text not null,
    clinician_username text not null,
    fhir_base_url text not null,
    launch_id text not null,
    context text,
    used_at bigint,
    created_at bigint not null,
    expires_at bigint not null,
    extension text
  )`,
  `create table authorization_request (
    id_hash text primary key not null,
    request text not null,
    created_at bigint not null,
    expires_at bigint not null,
    network_hash text
  )`,
  `create table "grant" (
    id text primary key not null,
    client_id text not null references client (client_id) on delete cascade,
    clinician_id text not null references clinician (id) on delete cascade,
    login_id_hash text,
    scope text not null,
    patient_id text,
    encounter_id text,
    need_patient_banner boolean,
    context text,
    auth_time bigint not null,
    created_at bigint not null,
    last_used_at bigint not null,
    revoked_at bigint,
    acr text,
    amr text,
    extension text,
    account_mark text default '' not null,
    basis text default '' not null,
    client_mark text default '' not null,
    issuer text,
    subject text
  )`,
  `create table authorization_code (
    code_hash text primary key not null,
    grant_id text not null references "grant" (id) on delete cascade,
    redirect_uri text not null,
    code_challenge text not null,
    nonce text,
    expires_at bigint not null,
    used_at bigint
  )`,
  `create table refresh_token (
    token_hash text primary key not null,
    grant_id text not null references "grant" (id) on delete cascade,
    used_at bigint,
    request_hash text,
    successor_hash text,
    successor_sealed text,
    created_at bigint not null,
    expires_at bigint not null
  )`,
  `create table revocation (
    id text primary key not null,
    revoked_at bigint not null,
    expires_at bigint not null
  )`,
  `create table used_assertion (
    client_id text not null,
    jti_hash text not null,
    expires_at bigint not null,
    constraint used_assertion_key primary key (client_id, jti_hash)
  )`,
  `create table app_key (
    generation integer not null primary key,
    public_jwk text not null,
    private_jwk_sealed text not null,
    created_at bigint not null
  )`,
  `create table app_launch (
    state_hash text primary key not null,
    browser_hash text not null,
    issuer text not null,
    fhir_base_url text not null,
    nonce text not null,
    code_verifier_sealed text not null,
    created_at bigint not null,
    expires_at bigint not null,
    network_hash text,
    launch_sealed text
  )`,
  `create table app_session (
    id_hash text primary key not null,
    session_id text not null unique,
    fhir_base_url text not null,
    issuer text not null,
    subject text,
    fhir_user text,
    name text,
    patient_id text not null,
    encounter_id text,
    need_patient_banner boolean not null,
    scope text not null,
    tokens_sealed text not null,
    token_version integer not null,
    renew_at bigint not null,
    renewing_until bigint,
    created_at bigint not null,
    max_expires_at bigint not null,
    idle_expires_at bigint not null,
    renewable_until bigint,
    launch_id text,
    ended_at bigint,
    similar_name boolean default false not null
  )`,
  `create table audit_event (
    id ${number} primary key,
    at bigint not null,
    server text not null,
    kind text not null,
    interaction text,
    allowed boolean not null,
    status integer not null,
    method text,
    request text,
    resource_type text,
    resource_id text,
    patient_id text,
    patients text,
    client_id text,
    subject text,
    fhir_user text,
    decided_by text,
    reason text,
    launch_id text,
    request_id text,
    address text,
    repeats integer,
    delivery_id text,
    details text,
    token_id text
  )`,
  `create table audit_event_patient (
    patient_id text not null,
    at bigint not null,
    audit_id bigint not null,
    constraint audit_event_patient_key primary key (patient_id, at, audit_id)
  )`,
  `create table audit_intent (
    id text primary key,
    at bigint not null,
    record text not null
  )`,
  `create table audit_waiting (
    id ${number} primary key,
    record text not null
  )`,
  `create table audit_cursor (
    feed text primary key,
    last_id bigint not null,
    moved_at bigint not null
  )`,
  `create table audit_refused (
    feed text not null,
    audit_id bigint not null,
    refused_at bigint not null,
    reason text not null,
    constraint audit_refused_key primary key (feed, audit_id)
  )`,
  `create table audit_seal (
    number bigint primary key,
    last_id bigint not null,
    records integer not null,
    newest_at bigint not null,
    hash text not null,
    hash_sealed text not null,
    checkpoint_sealed text
  )`,
  `create table audit_key (
    purpose text primary key,
    key text not null
  )`,
  `create table runtime_value (
    name text primary key not null,
    value text not null,
    changed_at bigint not null,
    expires_at bigint
  )`,
  `create table lease (
    job text primary key,
    holder text not null,
    ends_at bigint not null
  )`,
]

/** Searches of the audit trail repeat the conditions word for word, or the database does not use the index. */
const listIndexes = (order: string): readonly string[] => [
  'create index app_launch_browser_hash on app_launch (browser_hash)',
  'create index app_launch_expires_at on app_launch (expires_at)',
  'create index app_launch_network on app_launch (network_hash, expires_at)',
  'create index app_session_idle_expires_at on app_session (idle_expires_at)',
  'create index app_session_max_expires_at on app_session (max_expires_at)',
  'create index app_session_renewable_until on app_session (renewable_until)',
  `create index audit_event_at on audit_event (${order})`,
  `create index audit_event_client_id_at on audit_event (client_id, ${order})`,
  'create unique index audit_event_delivery_id on audit_event (delivery_id) where delivery_id is not null',
  `create index audit_event_failed on audit_event (${order}) where allowed = false or status >= 400 or status = 0`,
  `create index audit_event_fhir_user on audit_event (fhir_user, ${order}) where fhir_user is not null`,
  `create index audit_event_interaction on audit_event (interaction, ${order}) where kind = 'fhir' and interaction not in ('read', 'search-type', 'search-compartment')`,
  `create index audit_event_kind on audit_event (kind, ${order}) where kind <> 'fhir'`,
  `create index audit_event_launch_id_at on audit_event (launch_id, ${order})`,
  `create index audit_event_oauth on audit_event (launch_id, ${order}) where kind in ('launch', 'authorize', 'token', 'refresh', 'introspect', 'revoke')`,
  `create index audit_event_patient_id_at on audit_event (patient_id, ${order})`,
  `create index audit_event_request_id on audit_event (request_id, ${order}) where allowed = false or status >= 400 or status = 0`,
  'create index audit_event_patient_audit_id on audit_event_patient (audit_id, patient_id, at)',
  'create index audit_intent_at on audit_intent (at)',
  'create index audit_seal_newest_at on audit_seal (newest_at)',
  'create index authorization_code_expires_at on authorization_code (expires_at)',
  'create index authorization_code_grant_id on authorization_code (grant_id)',
  'create index authorization_request_expires_at on authorization_request (expires_at)',
  'create index authorization_request_network on authorization_request (network_hash, expires_at)',
  'create index client_approved on client (approved)',
  'create index client_expires_at on client (expires_at) where expires_at is not null',
  'create index client_launchable on client (approved desc, name) where launch_url is not null',
  'create index client_origin_origin on client_origin (origin)',
  'create index clinician_link_clinician_id on clinician_link (clinician_id)',
  'create index grant_client_id_created_at on "grant" (client_id, created_at, id)',
  'create index grant_clinician_id_created_at on "grant" (clinician_id, created_at, id)',
  'create index grant_last_used_at on "grant" (last_used_at, id)',
  'create index grant_revoked_at on "grant" (revoked_at) where revoked_at is not null',
  'create index launch_token_expires_at on launch_token (expires_at)',
  'create index login_clinician_id on login (clinician_id)',
  'create index login_expires_at on login (expires_at)',
  'create index login_issuer_sid on login (issuer, sid)',
  'create index login_issuer_subject on login (issuer, subject)',
  'create index login_failure_at on login_failure (at)',
  'create index login_failure_attempt on login_failure (attempt)',
  'create index login_failure_username_address_hash_at on login_failure (username_address_hash, at)',
  'create index factor_clinician_id on factor (clinician_id, created_at)',
  'create index pending_login_expires_at on pending_login (expires_at)',
  'create index pending_login_network on pending_login (network_hash, expires_at)',
  'create index pending_sign_in_expires_at on pending_sign_in (expires_at)',
  'create index pending_sign_in_network on pending_sign_in (network_hash, expires_at)',
  'create index refresh_token_expires_at on refresh_token (expires_at)',
  'create index refresh_token_grant_id on refresh_token (grant_id)',
  'create index refresh_token_successor on refresh_token (used_at) where successor_sealed is not null',
  'create index revocation_expires_at on revocation (expires_at)',
  'create index revocation_revoked_at on revocation (revoked_at)',
  'create index used_assertion_expires_at on used_assertion (expires_at)',
]

interface Trigger {
  readonly name: string
  /** `update of scope on client` */
  readonly after: string
  readonly when?: string | undefined
  readonly does: string
}

/** Triggers, so that no statement that changes a row can omit what follows from it. */
function listTriggers(dialect: Dialect): readonly string[] {
  const triggers = [...NOTES.map(note => describeNote(note, dialect)), ...listPatientTriggers(dialect)]
  return triggers.flatMap(({ name, after, when, does }) =>
    dialect === 'sqlite'
      ? [`create trigger ${name} after ${after} ${when ? `when ${when}` : ''} begin ${does}; end`]
      : [
          `create function ${name}() returns trigger language plpgsql as $$ begin ${does}; return null; end $$`,
          `create trigger ${name} after ${after} for each row ${when ? `when (${when})` : ''} execute function ${name}()`,
        ],
  )
}

/** A change after which logins and grants may have ended: a row of `access_change` names the account or the client. */
interface Note {
  readonly table: keyof Schema
  readonly event: 'update' | 'delete'
  /** The columns of an update; it must change one of them. */
  readonly columns?: readonly string[]
  /** The column that names the account or the client, and its column in `access_change`. */
  readonly key: string
  readonly noted: 'clinician_id' | 'client_id'
}

const NOTES: readonly Note[] = [
  {
    table: 'clinician',
    event: 'update',
    columns: ['password_hash', 'fhir_user_id', 'disabled', 'admin', 'access_version', 'for_loopback'],
    key: 'id',
    noted: 'clinician_id',
  },
  {
    table: 'client',
    event: 'update',
    columns: ['scope', 'disabled', 'enabled_at', 'expires_at', 'for_loopback'],
    key: 'client_id',
    noted: 'client_id',
  },
  {
    table: 'clinician_link',
    event: 'update',
    columns: ['clinician_id', 'provisioned'],
    key: 'clinician_id',
    noted: 'clinician_id',
  },
  { table: 'clinician_link', event: 'delete', key: 'clinician_id', noted: 'clinician_id' },
  { table: 'account_related_person', event: 'delete', key: 'clinician_id', noted: 'clinician_id' },
  { table: 'login', event: 'delete', key: 'clinician_id', noted: 'clinician_id' },
]

function describeNote({ table, event, columns, key, noted }: Note, dialect: Dialect): Trigger {
  const isOther = dialect === 'sqlite' ? 'is not' : 'is distinct from'
  return {
    name: `access_change_${table}_${event}`,
    after: `${event}${columns ? ` of ${columns.join(', ')}` : ''} on ${table}`,
    when: columns?.map(column => `old.${column} ${isOther} new.${column}`).join(' or '),
    does: `insert into access_change (${noted}) values (old.${key})`,
  }
}

/** The patients of an audit record about several, in a table of their own, where a search finds them. */
function listPatientTriggers(dialect: Dialect): readonly Trigger[] {
  const patients =
    dialect === 'sqlite'
      ? // `json_quote` escapes the ids, so that the separators can be replaced by those of a JSON array.
        `json_each('[' || replace(json_quote(trim(new.patients)), ' ', '","') || ']') as patient`
      : `unnest(string_to_array(trim(new.patients), ' ')) as patient (value)`
  return [
    {
      name: 'audit_event_add_patients',
      after: 'insert on audit_event',
      when: 'new.patients is not null',
      does: `insert into audit_event_patient (patient_id, at, audit_id)
        select distinct patient.value, new.at, new.id from ${patients} where patient.value <> '*'`,
    },
    {
      name: 'audit_event_remove_patients',
      after: 'delete on audit_event',
      when: 'old.patients is not null',
      does: 'delete from audit_event_patient where audit_id = old.id',
    },
  ]
}
