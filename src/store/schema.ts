import type { Generated } from 'kysely'

/** Milliseconds since 1970. A number on both databases. */
export type Instant = number

/** The tables, as both databases have them. Secrets are kept only as SHA-256 (`…_hash`) or encrypted (`…_sealed`). */
export interface Schema {
  clinician: ClinicianTable
  client: ClientTable
  client_origin: ClientOriginTable
  signing_key: SigningKeyTable
  login: LoginTable
  login_failure: LoginFailureTable
  launch_token: LaunchTokenTable
  authorization_request: AuthorizationRequestTable
  grant: GrantTable
  authorization_code: AuthorizationCodeTable
  refresh_token: RefreshTokenTable
  revocation: RevocationTable
  used_assertion: UsedAssertionTable
  app_key: AppKeyTable
  app_launch: AppLaunchTable
  app_session: AppSessionTable
  audit_event: AuditEventTable
  audit_intent: AuditIntentTable
}

/** LOGIN-1. `id` and `disabled` have defaults, so that one plain INSERT adds a clinician. */
interface ClinicianTable {
  id: Generated<string>
  username: string
  password_hash: string
  display_name: string
  fhir_user_id: string
  disabled: Generated<boolean>
}

interface ClientTable {
  client_id: string
  name: string
  description: string | null
  logo_url: string | null
  /** How the client proves itself at the token endpoint. */
  auth_method: 'none' | 'client_secret' | 'private_key_jwt'
  secret_hash: string | null
  jwks: string | null
  jwks_url: string | null
  /** JSON array. */
  redirect_uris: string
  /** JSON array: where a browser may be sent after a logout that the client asked for. */
  post_logout_redirect_uris: Generated<string>
  launch_url: string | null
  /** The scopes that the client may have, as a scope string. */
  scope: string
  first_party: boolean
  /** Whether an administrator vouches for it; a client that registered itself is unverified until then. */
  approved: Generated<boolean>
  /** False for an app of the SMART 1 era, which may leave the challenge out. */
  pkce_required: Generated<boolean>
  /** Whether it is sent `iss` in authorization responses (RFC 9207). */
  iss_parameter: Generated<boolean>
  created_at: Instant
}

/** The web origins of a client's redirect and launch URLs. */
interface ClientOriginTable {
  client_id: string
  origin: string
}

interface SigningKeyTable {
  kid: string
  /** 1, 2, 3, …: of several instances that make the next key at once, one wins. */
  generation: number
  public_jwk: string
  private_jwk_sealed: string
  created_at: Instant
  /** It is published before it signs, so that whoever caches the key set knows it by then. */
  signs_from: Instant
  /** Set when another key took over; the public part stays published until the last token has expired. */
  retired_at: Instant | null
}

/** A clinician's login at the auth server (8 hours). */
interface LoginTable {
  id_hash: string
  clinician_id: string
  created_at: Instant
  /** When a page was last opened with it, to the minute. */
  seen_at: Instant | null
  expires_at: Instant
}

interface LoginFailureTable {
  username_address_hash: string
  at: Instant
}

/** LAUNCH-5. */
interface LaunchTokenTable {
  token_hash: string
  patient_id: string
  encounter_id: string | null
  need_patient_banner: boolean
  client_id: string
  clinician_username: string
  fhir_base_url: string
  /** Becomes the id of the grant, and so goes through all that follows from the launch. */
  launch_id: string
  /** Further launch context as JSON (`intent`, `fhirContext`, `tenant`). */
  context: string | null
  created_at: Instant
  expires_at: Instant
  used_at: Instant | null
}

/** An authorization request that waits for its user (login, later picker and consent). */
interface AuthorizationRequestTable {
  id_hash: string
  /** The verified request as JSON. */
  request: string
  /** Of the network whose browser has no login yet; null when there is one. */
  network_hash: string | null
  created_at: Instant
  expires_at: Instant
}

/** What a clinician gave a client: the root of a code and of every token that follows from it. */
interface GrantTable {
  id: string
  client_id: string
  clinician_id: string
  /** The login it was made in; `online_access` ends with it. */
  login_id_hash: string | null
  scope: string
  patient_id: string | null
  encounter_id: string | null
  need_patient_banner: boolean | null
  context: string | null
  auth_time: Instant
  created_at: Instant
  last_used_at: Instant
  revoked_at: Instant | null
}

interface AuthorizationCodeTable {
  code_hash: string
  grant_id: string
  redirect_uri: string
  /** Empty where the client may leave it out, and did. */
  code_challenge: string
  nonce: string | null
  expires_at: Instant
  used_at: Instant | null
}

interface RefreshTokenTable {
  token_hash: string
  grant_id: string
  created_at: Instant
  expires_at: Instant
  used_at: Instant | null
  /** What it was used with, and the token that took its place: a retry after a lost response gets that one again. */
  request_hash: string | null
  successor_hash: string | null
  successor_sealed: string | null
}

/** What was revoked beside whole grants: single access tokens (by `jti`), and all tokens whose `jti` begins with it. */
interface RevocationTable {
  id: string
  revoked_at: Instant
  /** By then every token that it names has expired. */
  expires_at: Instant
}

/** Client assertions that were used: each is good once (RFC 7523, 3). */
interface UsedAssertionTable {
  client_id: string
  jti_hash: string
  expires_at: Instant
}

/** The key that the app proves itself with at auth servers; generation 1 wins when several instances start at once. */
interface AppKeyTable {
  generation: number
  public_jwk: string
  private_jwk_sealed: string
  created_at: Instant
}

/** A launch that the app began and whose callback has not come back yet. */
interface AppLaunchTable {
  state_hash: string
  /** Hash of the cookie that binds the launch to the browser. */
  browser_hash: string
  issuer: string
  fhir_base_url: string
  nonce: string
  code_verifier_sealed: string
  created_at: Instant
  expires_at: Instant
  /** Of the address that began it. */
  network_hash: string | null
}

/** A server-side session of the app. It ends at the earliest of its three ends (SESSION-2). */
interface AppSessionTable {
  /** Hash of the session cookie. */
  id_hash: string
  /** Public name of the session (`sessionId`), not a secret. */
  session_id: string
  fhir_base_url: string
  issuer: string
  subject: string | null
  fhir_user: string | null
  name: string | null
  patient_id: string
  encounter_id: string | null
  need_patient_banner: boolean
  scope: string
  /** Access and refresh token as JSON, encrypted. */
  tokens_sealed: string
  /** Counts renewals: tokens are replaced only by whoever has read the ones that are there. */
  token_version: number
  /** From when on the access token is renewed before it is used. */
  renew_at: Instant
  /** While one instance renews the tokens; the others wait for it. */
  renewing_until: Instant | null
  created_at: Instant
  max_expires_at: Instant
  idle_expires_at: Instant
  /** Until when the tokens can be used or renewed; null when the auth server did not tell. */
  renewable_until: Instant | null
  /** That of the auth server, where it tells one. */
  launch_id: string | null
}

/** An audit record (AUDIT-1): what was done, by whom, with which result. Rendered as a FHIR AuditEvent when it is read. */
interface AuditEventTable {
  id: Generated<number>
  at: Instant
  server: 'auth' | 'fhir' | 'app'
  /** What kind of event: `fhir`, `login`, `token`, … */
  kind: string
  /** Of a FHIR request: its interaction. */
  interaction: string | null
  allowed: boolean
  /** HTTP status of the response. */
  status: number
  method: string | null
  /** Address below the base, without values that may name a person. */
  request: string | null
  resource_type: string | null
  resource_id: string | null
  /** The one patient whose data it is about. */
  patient_id: string | null
  /** In its place, where it is about several: ` 1 2 `; with `*` where not all are named. */
  patients: string | null
  client_id: string | null
  /** The clinician's `id`. */
  subject: string | null
  /** The user's own resource: `Practitioner/1`. */
  fhir_user: string | null
  /** The scope that decided, or `fhirUser`, `public`. */
  decided_by: string | null
  /** Of a refusal: why. */
  reason: string | null
  /** One id from the launch to the end of the app's session. */
  launch_id: string | null
  request_id: string | null
  address: string | null
  /** Of a count: how many anonymous requests it stands for. Null where the record is of one request. */
  repeats: number | null
  /** Of a record that was durable elsewhere before it reached the trail: it is added once. */
  delivery_id: string | null
}

/** A change that another server is asked to make, announced before it is. It ends with the record of that change. */
interface AuditIntentTable {
  id: string
  at: Instant
  /** The audit record of a change whose outcome is not known, as JSON. */
  record: string
}
