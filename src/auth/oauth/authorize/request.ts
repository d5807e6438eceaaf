import type { FastifyRequest } from 'fastify'
import type { Kysely } from 'kysely'
import {
  createRandomToken,
  limitPendingRows,
  prepareInsert,
  prepareQuery,
  type Schema,
  sha256,
} from '../../../store/index.ts'
import { LIFETIME, LIMITS } from '../../base/limits.ts'
import { type AuthRefusal, refuse } from '../../base/refusal.ts'
import type { Parameters } from '../../base/request.ts'
import { findRoom } from '../../users/room.ts'
import type { Client } from '../clients/client.ts'
import type { AuthContext } from '../context.ts'
import type { FoundLaunch } from '../launch/launch-token.ts'

/** A verified authorization request (RFC 6749, 4.1.1). It is stored as JSON while its user logs in. */
export interface AuthorizationRequest {
  readonly clientId: string
  readonly redirectUri: string
  readonly state?: string
  /** The requested scopes; by default the registered scopes of the client. */
  readonly scope: string
  /** The endpoint of assistants, if the token is for that (RFC 8707): the client is then an assistant. Otherwise the FHIR base. */
  readonly resource?: string
  /** Undefined if PKCE is optional for the client and was not used. */
  readonly codeChallenge?: string
  /** Whether the response to this client has no `iss` parameter. */
  readonly omitsIss?: boolean
  readonly nonce?: string
  /** SHA-256 of the launch token, whose expiry was checked when the request arrived. */
  readonly launchHash?: string
  /** The id of the launch, or a new one, in all audit records. It becomes the id of the grant. */
  readonly launchId: string
  readonly prompts: readonly Prompt[]
  /** Maximum age of the login, in seconds. */
  readonly maxAge?: number
  /** The requested authentication context classes, in order of preference. */
  readonly acrValues?: readonly string[]
  /** Those of which the login must meet one. */
  readonly essentialAcr?: readonly string[]
  /** The user of the `id_token_hint`. */
  readonly expectedSubject?: string
  readonly loginHint?: string
  readonly arrivedAt: number
  /** What the user picked in a standalone launch. */
  readonly picked?: PickedContext
}

export interface PickedContext {
  /** Who picked: another user must pick again. */
  readonly userId: string
  readonly patientId: string
  readonly encounterId?: string
  /** For a first-party app: another patient has a similar name. */
  readonly similarName?: true
  /** The resource as which a patient user acts for the patient. */
  readonly fhirUserId?: string
}

export const PROMPTS = ['none', 'login', 'consent', 'select_account'] as const
export type Prompt = (typeof PROMPTS)[number]

/** The parameters of a request whose client and redirect URI have been verified, so that errors may be redirected. */
export interface RequestInput {
  readonly client: Client
  readonly redirectUri: string
  readonly parameters: Parameters
  readonly resource: string | undefined
  /** The launch that the request names, valid or not. */
  readonly launch: FoundLaunch | undefined
}

/** A request that passed all checks, with its client and its launch. */
export interface VerifiedRequest {
  readonly request: AuthorizationRequest
  readonly client: Client
  readonly launch: FoundLaunch | undefined
}

/** What a check adds to the verified request. */
export type RequestFinding = Partial<AuthorizationRequest>

/** A verified request that waits for its user. Its id is in the URL of the pages that the user sees. */
export interface PendingAuthorization {
  readonly id: string
  readonly request: AuthorizationRequest
}

/**
 * Stores a request while it waits for its user. Pass the HTTP request of a browser without a login: the number of such
 * requests is limited.
 */
export async function storePendingAuthorization(
  context: AuthContext,
  request: AuthorizationRequest,
  http: FastifyRequest | undefined,
): Promise<PendingAuthorization | AuthRefusal> {
  const { store, clock } = context
  const networkHash = http && findRoom(context, http)
  if (networkHash !== undefined && !(await admitRow(store.db, { networkHash, now: clock() })))
    return refuse('too-many-waiting', { most: LIMITS.pendingPerNetwork })
  const id = createRandomToken()
  await insertRequest(store.db, {
    id_hash: sha256(id),
    request: JSON.stringify(request),
    network_hash: networkHash ?? null,
    created_at: request.arrivedAt,
    expires_at: request.arrivedAt + LIFETIME.interaction,
  })
  return { id, request }
}

const insertRequest = prepareInsert('authorization_request')

const admitRow = limitPendingRows('authorization_request', {
  perNetwork: LIMITS.pendingPerNetwork,
  inAll: LIMITS.pending,
})

/** Finds the stored request that a page or form names, unless it has ended or expired. */
export async function findPendingAuthorization(
  { store, clock }: AuthContext,
  parameters: Parameters,
): Promise<PendingAuthorization | undefined> {
  const id = parameters.get('interaction')
  if (id === undefined) return undefined
  const [row] = (await selectRequest(store.db, { idHash: sha256(id), now: clock() })).rows
  return row && { id, request: JSON.parse(row.request) }
}

const selectRequest = prepareQuery((db, { idHash, now }: { idHash: string; now: number }) =>
  db
    .selectFrom('authorization_request')
    .select('request')
    .where('id_hash', '=', idHash)
    .where('expires_at', '>', now),
)

export async function storePickedContext(
  db: Kysely<Schema>,
  pending: PendingAuthorization,
  picked: PickedContext,
): Promise<PendingAuthorization> {
  const request = { ...pending.request, picked }
  await db
    .updateTable('authorization_request')
    .set({ request: JSON.stringify(request) })
    .where('id_hash', '=', sha256(pending.id))
    .execute()
  return { id: pending.id, request }
}

/** Deletes it by compare-and-set: it ends in one code or one refusal, however often its form is submitted. */
export async function consumePendingAuthorization(db: Kysely<Schema>, id: string): Promise<boolean> {
  const result = await db
    .deleteFrom('authorization_request')
    .where('id_hash', '=', sha256(id))
    .executeTakeFirst()
  return result.numDeletedRows === 1n
}
