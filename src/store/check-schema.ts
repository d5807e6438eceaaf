import { type RawBuilder, sql } from 'kysely'
import type { Schema } from './schema.ts'
import type { Store } from './store.ts'

type Shape = {
  readonly [Table in keyof Schema]: {
    readonly [Column in keyof Schema[Table]]: null extends Schema[Table][Column] ? 'nullable' : 'required'
  }
}

/**
 * The expected tables and columns: the compiler checks it against `Schema`, and each start checks the database
 * against it.
 */
const SHAPE: Shape = {
  clinician: {
    id: 'required',
    username: 'required',
    password_hash: 'required',
    display_name: 'required',
    fhir_user_id: 'required',
    disabled: 'required',
    admin: 'required',
    access_version: 'required',
    for_loopback: 'required',
  },
  access_change: { id: 'required', clinician_id: 'nullable', client_id: 'nullable' },
  account_related_person: { clinician_id: 'required', related_person_id: 'required' },
  clinician_link: {
    issuer: 'required',
    subject: 'required',
    clinician_id: 'required',
    provisioned: 'required',
    created_at: 'required',
  },
  pending_sign_in: {
    state_hash: 'required',
    browser_hash: 'required',
    request_sealed: 'required',
    network_hash: 'required',
    expires_at: 'required',
  },
  client: {
    client_id: 'required',
    name: 'required',
    description: 'nullable',
    logo_url: 'nullable',
    auth_method: 'required',
    secret_hash: 'nullable',
    jwks: 'nullable',
    jwks_url: 'nullable',
    redirect_uris: 'required',
    post_logout_redirect_uris: 'required',
    launch_url: 'nullable',
    scope: 'required',
    first_party: 'required',
    approved: 'required',
    pkce_required: 'required',
    iss_parameter: 'required',
    created_at: 'required',
    expires_at: 'nullable',
    disabled: 'required',
    enabled_at: 'nullable',
    for_loopback: 'required',
  },
  client_origin: { client_id: 'required', origin: 'required' },
  signing_key: {
    kid: 'required',
    generation: 'required',
    public_jwk: 'required',
    private_jwk_sealed: 'required',
    created_at: 'required',
    signs_from: 'required',
    retired_at: 'nullable',
  },
  login: {
    id_hash: 'required',
    clinician_id: 'required',
    created_at: 'required',
    seen_at: 'nullable',
    expires_at: 'required',
    issuer: 'nullable',
    subject: 'nullable',
    sid: 'nullable',
    acr: 'nullable',
    amr: 'nullable',
    auth_time: 'nullable',
    id_token_sealed: 'nullable',
    admin: 'required',
    account_mark: 'required',
    basis: 'required',
  },
  login_failure: { username_address_hash: 'required', at: 'required', attempt: 'nullable' },
  recent_use: { clinician_id: 'required', kind: 'required', item_id: 'required', used_at: 'required' },
  launch_token: {
    token_hash: 'required',
    patient_id: 'required',
    encounter_id: 'nullable',
    need_patient_banner: 'required',
    client_id: 'required',
    clinician_username: 'required',
    fhir_base_url: 'required',
    launch_id: 'required',
    context: 'nullable',
    extension: 'nullable',
    created_at: 'required',
    expires_at: 'required',
    used_at: 'nullable',
  },
  authorization_request: {
    id_hash: 'required',
    request: 'required',
    network_hash: 'nullable',
    created_at: 'required',
    expires_at: 'required',
  },
  grant: {
    id: 'required',
    client_id: 'required',
    clinician_id: 'required',
    login_id_hash: 'nullable',
    scope: 'required',
    patient_id: 'nullable',
    encounter_id: 'nullable',
    need_patient_banner: 'nullable',
    context: 'nullable',
    extension: 'nullable',
    auth_time: 'required',
    acr: 'nullable',
    amr: 'nullable',
    created_at: 'required',
    last_used_at: 'required',
    revoked_at: 'nullable',
    issuer: 'nullable',
    subject: 'nullable',
    account_mark: 'required',
    client_mark: 'required',
    basis: 'required',
  },
  authorization_code: {
    code_hash: 'required',
    grant_id: 'required',
    redirect_uri: 'required',
    code_challenge: 'required',
    nonce: 'nullable',
    expires_at: 'required',
    used_at: 'nullable',
  },
  refresh_token: {
    token_hash: 'required',
    grant_id: 'required',
    created_at: 'required',
    expires_at: 'required',
    used_at: 'nullable',
    request_hash: 'nullable',
    successor_hash: 'nullable',
    successor_sealed: 'nullable',
  },
  revocation: { id: 'required', revoked_at: 'required', expires_at: 'required' },
  used_assertion: { client_id: 'required', jti_hash: 'required', expires_at: 'required' },
  app_key: {
    generation: 'required',
    public_jwk: 'required',
    private_jwk_sealed: 'required',
    created_at: 'required',
  },
  app_launch: {
    state_hash: 'required',
    browser_hash: 'required',
    issuer: 'required',
    fhir_base_url: 'required',
    nonce: 'required',
    code_verifier_sealed: 'required',
    created_at: 'required',
    expires_at: 'required',
    network_hash: 'nullable',
    launch_sealed: 'nullable',
  },
  app_session: {
    id_hash: 'required',
    session_id: 'required',
    fhir_base_url: 'required',
    issuer: 'required',
    subject: 'nullable',
    fhir_user: 'nullable',
    name: 'nullable',
    patient_id: 'required',
    encounter_id: 'nullable',
    need_patient_banner: 'required',
    scope: 'required',
    tokens_sealed: 'required',
    token_version: 'required',
    renew_at: 'required',
    renewing_until: 'nullable',
    created_at: 'required',
    max_expires_at: 'required',
    idle_expires_at: 'required',
    renewable_until: 'nullable',
    launch_id: 'nullable',
    ended_at: 'nullable',
    similar_name: 'required',
  },
  audit_event: {
    id: 'required',
    at: 'required',
    server: 'required',
    kind: 'required',
    interaction: 'nullable',
    allowed: 'required',
    status: 'required',
    method: 'nullable',
    request: 'nullable',
    resource_type: 'nullable',
    resource_id: 'nullable',
    patient_id: 'nullable',
    patients: 'nullable',
    client_id: 'nullable',
    subject: 'nullable',
    fhir_user: 'nullable',
    decided_by: 'nullable',
    reason: 'nullable',
    launch_id: 'nullable',
    request_id: 'nullable',
    address: 'nullable',
    repeats: 'nullable',
    details: 'nullable',
    delivery_id: 'nullable',
    token_id: 'nullable',
  },
  audit_event_patient: { patient_id: 'required', at: 'required', audit_id: 'required' },
  audit_intent: { id: 'required', at: 'required', record: 'required' },
  audit_seal: {
    number: 'required',
    last_id: 'required',
    records: 'required',
    newest_at: 'required',
    hash: 'required',
    hash_sealed: 'required',
    checkpoint_sealed: 'nullable',
  },
  audit_cursor: { feed: 'required', last_id: 'required', moved_at: 'required' },
  audit_refused: { feed: 'required', audit_id: 'required', refused_at: 'required', reason: 'required' },
  audit_waiting: { id: 'required', record: 'required' },
  audit_key: { purpose: 'required', key: 'required' },
  lease: { job: 'required', holder: 'required', ends_at: 'required' },
  runtime_value: { name: 'required', value: 'required', changed_at: 'required', expires_at: 'nullable' },
}

interface Column {
  readonly table: string
  readonly name: string
  readonly needed: boolean
}

const COLUMNS: Readonly<Record<Store['dialect'], RawBuilder<Column>>> = {
  sqlite: sql`select m.name as "table", c.name, c."notnull" = 1 and c.dflt_value is null and c.pk = 0 as needed
    from sqlite_schema m join pragma_table_info(m.name) c where m.type = 'table'`,
  postgres: sql`select table_name as "table", column_name as name,
    is_nullable = 'NO' and column_default is null as needed
    from information_schema.columns where table_schema = current_schema()`,
}

/**
 * Throws if the tables differ from those that the code expects, for example because a migration was changed after
 * it had been applied. Additional tables, and additional columns that need no value, are allowed.
 */
export async function checkSchema({ db, dialect }: Pick<Store, 'db' | 'dialect'>): Promise<void> {
  const { rows } = await COLUMNS[dialect].execute(db)
  const found = new Map(rows.map(column => [`${column.table}.${column.name}`, Boolean(column.needed)]))
  for (const [table, shape] of Object.entries<Readonly<Record<string, string>>>(SHAPE)) {
    for (const [name, kind] of Object.entries(shape)) {
      const needed = found.get(`${table}.${name}`)
      if (needed === undefined) throw differs(`column ${table}.${name} is missing`)
      if (needed && kind === 'nullable') throw differs(`column ${table}.${name} must not be null`)
    }
    const further = rows.find(({ table: of, name, needed }) => of === table && needed && !(name in shape))
    if (further) throw differs(`column ${table}.${further.name} is unknown`)
  }
}

function differs(how: string): Error {
  return new Error(
    `its schema does not match this version (${how}); restore a backup of this version, or start with a new database`,
  )
}
