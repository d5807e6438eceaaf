import type { Generated } from 'kysely'

/** Milliseconds since 1970. A number on both databases. */
export type Instant = number

/** Secrets are stored only as SHA-256 (`…_hash`) or encrypted (`…_sealed`). */
export interface Schema {
  clinician: ClinicianTable
  access_change: AccessChangeTable
  client: ClientTable
  client_origin: ClientOriginTable
  signing_key: SigningKeyTable
  clinician_link: ClinicianLinkTable
  account_related_person: AccountRelatedPersonTable
  pending_sign_in: PendingSignInTable
  pending_login: PendingLoginTable
  factor: FactorTable
  recovery_code: RecoveryCodeTable
  login: LoginTable
  login_failure: LoginFailureTable
  wrong_code: WrongCodeTable
  removed_clinician: RemovedClinicianTable
  removed_client: RemovedClientTable
  wrong_password: WrongPasswordTable
  known_sender: KnownSenderTable
  activation_link: ActivationLinkTable
  recent_use: RecentUseTable
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
  audit_event_patient: AuditEventPatientTable
  audit_intent: AuditIntentTable
  audit_seal: AuditSealTable
  audit_cursor: AuditCursorTable
  audit_refused: AuditRefusedTable
  audit_waiting: AuditWaitingTable
  audit_key: AuditKeyTable
  lease: LeaseTable
  runtime_value: RuntimeValueTable
  export_job: ExportJobTable
  proposal: ProposalTable
}

/** LOGIN-1. `id`, `disabled` and `admin` have defaults, so that one plain INSERT adds a clinician. */
interface ClinicianTable {
  id: Generated<string>
  username: string
  password_hash: string
  display_name: string
  fhir_user_id: string
  disabled: Generated<boolean>
  /** An administrator, however the clinician signs in. */
  admin: Generated<boolean>
  /** May see the administration and change nothing. Without effect on an administrator. */
  auditor: Generated<boolean>
  /** Logins and grants of an earlier version have ended. */
  access_version: Generated<number>
  /** A sample account: it does not exist for a server with a public URL. */
  for_loopback: Generated<boolean>
  /** Somebody else chose the password. */
  must_change_password: Generated<boolean>
  /** Null if the account is older than the column, or a plain INSERT added it. */
  created_at: Instant | null
  /** The last sign-in of the user. Null: none since the column exists. */
  signed_in_at: Instant | null
  /** Null: not since the column exists. */
  password_changed_at: Instant | null
}

/** A removed account, as long as audit records name it. A trigger writes it. */
interface RemovedClinicianTable {
  id: string
  username: string
  display_name: string
  fhir_user_id: string
}

/** A removed client, as long as audit records name it. A trigger writes it. */
interface RemovedClientTable {
  client_id: string
  name: string
  first_party: boolean
}

/** An account or a client that changed: its logins, grants and tokens may have ended. Triggers write it. */
interface AccessChangeTable {
  id: Generated<number>
  clinician_id: string | null
  client_id: string | null
}

/** A RelatedPerson as which a user acts for a patient (PATIENTS-4). */
interface AccountRelatedPersonTable {
  clinician_id: string
  related_person_id: string
}

/** A user of an identity provider who signs in as a clinician (SIGNIN-6). */
interface ClinicianLinkTable {
  issuer: string
  subject: string
  clinician_id: string
  /** Whether the first sign-in created the clinician; the mapping then follows the provider. */
  provisioned: boolean
  created_at: Instant
}

/** A sign-in whose user is at the identity provider. */
interface PendingSignInTable {
  state_hash: string
  /** The hash of the cookie that binds it to a browser. */
  browser_hash: string
  /** Provider, nonce, code verifier and authorization request as JSON, encrypted. */
  request_sealed: string
  network_hash: string
  expires_at: Instant
}

/** A sign-in that needs another step: no login exists yet. */
interface PendingLoginTable {
  /** The hash of the cookie that binds it to a browser. */
  id_hash: string
  /** Who signs in, how, and the challenge of a passkey, as JSON, encrypted. */
  state_sealed: string
  network_hash: string
  expires_at: Instant
}

/** A second factor of an account: an authenticator app (TOTP) or a passkey (WebAuthn). */
interface FactorTable {
  id: Generated<string>
  clinician_id: string
  kind: 'totp' | 'passkey'
  name: string
  /** Of an authenticator app. */
  secret_sealed: string | null
  /** The 30 seconds of its last code: no code of them or of earlier ones is accepted again. */
  last_step: number | null
  /** Of a passkey, as base64url. */
  credential_id: string | null
  public_key: string | null
  /** It must increase, unless the passkey does not count. */
  sign_count: number | null
  /** JSON array. */
  transports: string | null
  created_at: Instant
  used_at: Instant | null
}

/** Each works once, instead of a second factor. */
interface RecoveryCodeTable {
  clinician_id: string
  code_hash: string
}

interface ClientTable {
  client_id: string
  name: string
  description: string | null
  logo_url: string | null
  website_url: string | null
  policy_url: string | null
  terms_url: string | null
  /** JSON array. */
  contacts: Generated<string>
  auth_method: 'none' | 'client_secret' | 'private_key_jwt'
  secret_hash: string | null
  jwks: string | null
  jwks_url: string | null
  /** JSON array. */
  redirect_uris: string
  /** JSON array. */
  post_logout_redirect_uris: Generated<string>
  launch_url: string | null
  scope: string
  first_party: boolean
  /** An administrator approved it; a self-registered client is unverified until then. */
  approved: Generated<boolean>
  /** False for an app of the SMART 1 era, which may omit the challenge. */
  pkce_required: Generated<boolean>
  /** RFC 9207. */
  iss_parameter: Generated<boolean>
  created_at: Instant
  /** When a temporary client is deleted. Null for all others. */
  expires_at: Instant | null
  /** A disabled client is treated like an unknown one. */
  disabled: Generated<boolean>
  /** When it was last enabled again. Its earlier tokens stay revoked. */
  enabled_at: Instant | null
  /** A client without a registration: until when its metadata document, whose URL is its id, is fresh. Null for all others. */
  document_until: Instant | null
  /** The account of the person who registered it, if that is known. */
  registered_by: string | null
  /** A client that registered itself on loopback, or a temporary one there: it does not exist for a server with a public URL. */
  for_loopback: Generated<boolean>
}

interface ClientOriginTable {
  client_id: string
  origin: string
}

interface SigningKeyTable {
  kid: string
  /** 1, 2, 3, …: if several instances create the next key at once, one wins. */
  generation: number
  public_jwk: string
  private_jwk_sealed: string
  created_at: Instant
  /** A key is published before it signs, so that every key set cache has it by then. */
  signs_from: Instant
  /** The public part stays published until the last token has expired. */
  retired_at: Instant | null
}

interface LoginTable {
  id_hash: string
  clinician_id: string
  created_at: Instant
  /** To the minute. */
  seen_at: Instant | null
  expires_at: Instant
  /** The identity provider and its user. Null after a login with a password of ours. */
  issuer: string | null
  subject: string | null
  /** The provider's session. */
  sid: string | null
  acr: string | null
  /** JSON array. */
  amr: string | null
  /** When the provider authenticated the user, if it said so. */
  auth_time: Instant | null
  /** For the logout at the provider. */
  id_token_sealed: string | null
  /** Whether the provider called the user an administrator. */
  admin: Generated<boolean>
  /** The browser in words, and its address. Null for a login of developer tools. */
  browser: string | null
  address: string | null
  /** The mark of the account when the login began. */
  account_mark: Generated<string>
  /** What else was true then, as JSON (`Basis`). */
  basis: Generated<string>
}

interface LoginFailureTable {
  username_address_hash: string
  at: Instant
  /** Set while it is not known whether the attempt fails. */
  attempt: string | null
}

/** A wrong second factor, for its owner to see, and for a limit of one-time codes that lasts longer than that of other failures. */
interface WrongCodeTable {
  id: string
  clinician_id: string
  at: Instant
  kind: 'code' | 'recovery-code' | 'passkey'
  /** The browser or network from which the user has signed in before; null for all others together. */
  sender_hash: string | null
  /** Null in rows of 0.3.0. */
  address: string | null
}

/** A wrong password of an account since its last sign-in, for a limit over all addresses (LOGIN-16). */
interface WrongPasswordTable {
  id: string
  clinician_id: string
  /** The browser or network from which the user has signed in before; null for all others together. */
  sender_hash: string | null
  at: Instant
  address: string
}

/** A browser or network from which a user signed in with a password or passkey of this server. */
interface KnownSenderTable {
  clinician_id: string
  sender_hash: string
  seen_at: Instant
}

/** A one-time link with which a user chooses a password; the last one of each account. */
interface ActivationLinkTable {
  clinician_id: string
  token_hash: string
  /** Of the account, when the link was created. */
  account_mark: string
  expires_at: Instant
  used_at: Instant | null
}

/** What a clinician opened last, for the lists of the portal. */
interface RecentUseTable {
  clinician_id: string
  kind: 'patient' | 'app'
  item_id: string
  used_at: Instant
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
  /** Becomes the id of the grant, and so identifies everything that follows from the launch. */
  launch_id: string
  /** JSON (`intent`, `fhirContext`, `tenant`). */
  context: string | null
  /** The data of an extension of the launch. */
  extension: string | null
  created_at: Instant
  expires_at: Instant
  used_at: Instant | null
}

interface AuthorizationRequestTable {
  id_hash: string
  /** The verified request as JSON. */
  request: string
  /** Null if the browser has a login. */
  network_hash: string | null
  created_at: Instant
  expires_at: Instant
}

interface GrantTable {
  id: string
  client_id: string
  clinician_id: string
  /** `online_access` ends with this login. */
  login_id_hash: string | null
  scope: string
  patient_id: string | null
  encounter_id: string | null
  need_patient_banner: boolean | null
  context: string | null
  /** The data of an extension of its launch. */
  extension: string | null
  auth_time: Instant
  acr: string | null
  /** JSON array. */
  amr: string | null
  created_at: Instant
  last_used_at: Instant
  revoked_at: Instant | null
  /** The identity provider and its user, as in the login. */
  issuer: string | null
  subject: string | null
  /** The marks of the account and of the client when it was given. */
  account_mark: Generated<string>
  client_mark: Generated<string>
  /** What else was true then, as JSON (`Basis`). */
  basis: Generated<string>
  /** The endpoint of assistants, if its tokens are for that. Null: the FHIR base. */
  resource: string | null
}

interface AuthorizationCodeTable {
  code_hash: string
  grant_id: string
  redirect_uri: string
  /** Empty if the client may omit it, and did. */
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
  /**
   * The hash of the request that used the token, and the token that replaced it: a retry after a lost response gets
   * the same token.
   */
  request_hash: string | null
  successor_hash: string | null
  successor_sealed: string | null
}

/** Single access tokens (by `jti`), and all tokens whose `jti` begins with the id. */
interface RevocationTable {
  id: string
  revoked_at: Instant
  expires_at: Instant
}

/** A client assertion may be used once (RFC 7523, 3). */
interface UsedAssertionTable {
  client_id: string
  jti_hash: string
  expires_at: Instant
}

interface AppKeyTable {
  generation: number
  public_jwk: string
  private_jwk_sealed: string
  created_at: Instant
}

interface AppLaunchTable {
  state_hash: string
  browser_hash: string
  issuer: string
  fhir_base_url: string
  nonce: string
  code_verifier_sealed: string
  created_at: Instant
  expires_at: Instant
  network_hash: string | null
  /** The launch token of a launch in a frame, encrypted: a pop-up or a new tab repeats the launch with it. */
  launch_sealed: string | null
}

/** A server-side session of the app. It ends at the earliest of its three ends (SESSION-2). */
interface AppSessionTable {
  id_hash: string
  /** Public id of the session (`sessionId`), not a secret. */
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
  /** Counts renewals, for compare-and-set. */
  token_version: number
  renew_at: Instant
  /** Set while one instance renews the tokens; the others wait for it. */
  renewing_until: Instant | null
  created_at: Instant
  max_expires_at: Instant
  idle_expires_at: Instant
  /** Null if the auth server did not state the lifetime. */
  renewable_until: Instant | null
  /** The auth server's launch id, if it sends one. */
  launch_id: string | null
  /** Set if the session ends before it expires. The row stays until then, so that its URL can say that it has ended. */
  ended_at: Instant | null
  /** Whether another patient has a similar name, if the auth server says so. */
  similar_name: Generated<boolean>
}

/** An audit record (AUDIT-1). It is converted to a FHIR AuditEvent when it is read. */
interface AuditEventTable {
  id: Generated<number>
  at: Instant
  server: 'auth' | 'fhir' | 'app'
  kind: string
  interaction: string | null
  allowed: boolean
  status: number
  method: string | null
  /** URL below the base, without values that may identify a person. */
  request: string | null
  resource_type: string | null
  resource_id: string | null
  patient_id: string | null
  /** Replaces `patient_id` if there are several: ` 1 2 `; with `*` if not all are named. */
  patients: string | null
  client_id: string | null
  subject: string | null
  /** `Practitioner/1`. */
  fhir_user: string | null
  /** The scope that allowed the request, or `fhirUser`, `public`. */
  decided_by: string | null
  reason: string | null
  /** One id from the launch to the end of the app's session. */
  launch_id: string | null
  request_id: string | null
  address: string | null
  /** The number of anonymous requests that it counts. Null for a record of one request. */
  repeats: number | null
  /** The details of an OAuth event or of an administrator's change, as JSON. */
  details: string | null
  /** The id of a record that was durable elsewhere before it reached the trail: it is added once. */
  delivery_id: string | null
  /** The `jti` of the access token, without the launch id that it begins with. */
  token_id: string | null
}

/** One link of the hash chain over the audit trail: all records after those of the seal before, up to `last_id`. */
interface AuditSealTable {
  /** 1, 2, 3, …: if two processes make the next seal at once, one wins. */
  number: number
  last_id: number
  records: number
  newest_at: Instant
  hash: string
  /** The hash, encrypted: without the secret nobody can make a seal. */
  hash_sealed: string
  /** The hash again, encrypted, when the records up to this seal were removed after their retention time. */
  checkpoint_sealed: string | null
}

/** The last audit record that a feed has delivered. */
interface AuditCursorTable {
  feed: string
  last_id: number
  moved_at: Instant
}

/** An audit record that the receiver of a feed refused. It is sent again later. */
interface AuditRefusedTable {
  feed: string
  audit_id: number
  refused_at: Instant
  reason: string
}

/** SQLite: audit records that are durable but not yet in the trail, as JSON. It has no indexes. */
interface AuditWaitingTable {
  id: Generated<number>
  record: string
}

/** A random key of this trail. */
interface AuditKeyTable {
  purpose: string
  key: string
}

/** A change that another server is about to make. It ends with the record of that change. */
interface AuditIntentTable {
  id: string
  at: Instant
  /** The audit record of a change with an unknown outcome, as JSON. */
  record: string
}

/** A patient of a record about several, in the order of the trail. Triggers of `audit_event` write it. */
interface AuditEventPatientTable {
  patient_id: string
  at: Instant
  audit_id: number
}

/** The process that does a job. The others leave it until the lease ends. */
interface LeaseTable {
  job: string
  holder: string
  ends_at: Instant
}

/** A value that an administrator sets while the servers run, for the processes of all instances. */
interface RuntimeValueTable {
  name: string
  value: string
  changed_at: Instant
  /** Null: it holds until it is changed. */
  expires_at: Instant | null
}

/** A bulk export. */
interface ExportJobTable {
  id: string
  /** Of the tokens that may use it; empty for our auth server. */
  issuer: string
  client_id: string
  level: string
  /** The exported types, separated by spaces. */
  types: string
  /** Resources that changed later are not in it. */
  started_at: Instant
  expires_at: Instant
  /** The client was told to ask for the status at this time or later. */
  next_poll_at: Instant
  /** Counts the changes of the plan: two processes that continue it at once do not both write. */
  revision: number
  /** Null until all files are known. */
  files: number | null
  /** What it selects, as JSON, encrypted: it may name patients. */
  order_sealed: string
  /** Its files as far as they are known, as JSON, encrypted. */
  plan_sealed: string | null
}

/** A change that an assistant proposes (PROPOSAL-1). */
interface ProposalTable {
  id: string
  /** The person who may sign it. */
  clinician_id: string
  client_id: string
  grant_id: string
  patient_id: string | null
  action: 'create' | 'update' | 'patch' | 'delete'
  resource_type: string
  /** `signing`: it may have been written, and the answer is not known. An open one also ends with its time. */
  state: 'open' | 'signing' | 'signed' | 'rejected' | 'withdrawn' | 'expired'
  created_at: Instant
  expires_at: Instant
  /** When its state changed. */
  decided_at: Instant | null
  /** The resource, its version, the content and the reason, as JSON, encrypted. */
  change_sealed: string
  /** What was written, or why it was rejected, as JSON, encrypted. */
  outcome_sealed: string | null
}
