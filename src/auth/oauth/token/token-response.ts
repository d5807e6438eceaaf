import { randomBytes } from 'node:crypto'
import type { Kysely, Transaction } from 'kysely'
import type { Settings } from '../../../config/index.ts'
import type { Claims } from '../../../jwt/index.ts'
import { parseScopes } from '../../../smart/index.ts'
import { createRandomToken, prepareInsert, prepareQuery, type Schema, sha256 } from '../../../store/index.ts'
import { LIFETIME } from '../../base/limits.ts'
import type { Parameters } from '../../base/request.ts'
import { buildFhirUser } from '../../base/user.ts'
import type { Client } from '../clients/client.ts'
import type { AuthContext } from '../context.ts'
import { buildContextMembers, buildUserClaims, hasScope, type UserGrant } from '../grants/grant.ts'
import { readExtension } from '../hooks.ts'
import { signOwnJwt } from '../keys/key-ring.ts'
import type { SigningKey } from '../keys/signing-key.ts'
import type { ExtraContext } from '../launch/options.ts'

/**
 * A token request of an authenticated client. One transaction consumes the code or token, issues new ones and writes the
 * audit record, so that a request without a record changes nothing.
 */
export interface TokenRequest {
  readonly trx: Transaction<Schema>
  readonly client: Client
  readonly form: Parameters
}

/** RFC 6749, 5.1; SMART 2.2, launch context. */
export interface TokenResponse extends ExtraContext {
  readonly access_token: string
  readonly token_type: 'Bearer'
  readonly expires_in: number
  readonly scope: string
  readonly refresh_token?: string
  /** Seconds until the tokens can no longer be refreshed, so that an app can end its session. */
  readonly refresh_token_expires_in?: number
  readonly id_token?: string
  readonly patient?: string
  readonly encounter?: string
  readonly need_patient_banner?: boolean
  readonly smart_style_url?: string
  /** An extension: the id of the launch in the audit trail. */
  readonly launch_id?: string
}

/** A grant that tokens are issued for. `scope` may be narrower than the grant's. */
export interface TokenGrant {
  readonly grant: UserGrant
  readonly scope: string
  readonly refreshToken: string | undefined
  readonly nonce: string | undefined
}

/** A token response before its tokens are signed. */
export interface UnsignedTokens {
  readonly accessToken: Claims
  readonly idToken?: Claims
  readonly response: Omit<TokenResponse, 'access_token' | 'id_token'>
  /** Backend services have no grant. */
  readonly grant?: UserGrant
}

/** Signs in other threads. Call it after the commit, because a transaction blocks other requests. */
export async function signTokens(key: SigningKey, tokens: UnsignedTokens): Promise<TokenResponse> {
  const { accessToken, idToken, response } = tokens
  const [access_token, id_token] = await Promise.all([
    signOwnJwt(key, 'at+jwt', accessToken),
    idToken && signOwnJwt(key, 'JWT', idToken),
  ])
  return { access_token, ...response, ...(id_token === undefined ? {} : { id_token }) }
}

/** Builds the token response with the launch context. */
export function buildTokens(
  context: Pick<AuthContext, 'settings' | 'clock' | 'hooks'>,
  tokenGrant: TokenGrant,
): UnsignedTokens {
  const { grant, scope, refreshToken } = tokenGrant
  const now = context.clock()
  const { tokenSeconds = context.settings.accessTokenTtlSeconds, changeClaims } = readExtension(
    context,
    grant,
  )
  const lifetimeSeconds = computeLifetime(grant, now, tokenSeconds)
  const iat = Math.floor(now / 1000)
  const times = { iat, exp: iat + lifetimeSeconds }
  const accessToken = buildAccessToken(context.settings, grant, scope, times)
  return {
    grant,
    accessToken: changeClaims?.(accessToken) ?? accessToken,
    ...(hasScope(scope, 'openid') ? { idToken: buildIdToken(context.settings, tokenGrant, times) } : {}),
    response: {
      token_type: 'Bearer',
      expires_in: lifetimeSeconds,
      scope,
      ...(refreshToken === undefined ? {} : { refresh_token: refreshToken, ...computeRenewal(grant, now) }),
      ...buildContextMembers(context, grant),
      launch_id: grant.id,
    },
  }
}

// A token must not outlive its grant.
function computeLifetime({ endsAt }: UserGrant, now: number, longestSeconds: number): number {
  return endsAt === undefined ? longestSeconds : Math.min(longestSeconds, Math.ceil((endsAt - now) / 1000))
}

/** `online_access` ends with the login; `offline_access` has an end only by a setting. */
function computeRenewal({ endsAt }: UserGrant, now: number): { refresh_token_expires_in?: number } {
  return endsAt === undefined
    ? {}
    : { refresh_token_expires_in: Math.max(0, Math.floor((endsAt - now) / 1000)) }
}

/** When a token was issued and when it expires, in seconds. */
type Times = Readonly<Record<'iat' | 'exp', number>>

/** OIDC Core, 2. */
function buildIdToken(settings: Settings, { grant, scope, nonce }: TokenGrant, times: Times): Claims {
  return {
    iss: settings.issuerUrl,
    sub: grant.user.id,
    aud: grant.clientId,
    ...times,
    auth_time: Math.floor(grant.authTime / 1000),
    ...(grant.acr === undefined ? {} : { acr: grant.acr }),
    ...(grant.amr === undefined ? {} : { amr: grant.amr }),
    ...(nonce === undefined ? {} : { nonce }),
    ...buildUserClaims(settings, grant, scope),
  }
}

/** Its `jti` begins with the grant's id, so that all tokens of a grant can be revoked. */
function buildAccessToken(settings: Settings, grant: UserGrant, scope: string, times: Times): Claims {
  return {
    iss: settings.issuerUrl,
    sub: grant.user.id,
    aud: grant.resource ?? settings.fhirBaseUrl,
    client_id: grant.clientId,
    scope,
    jti: `${grant.id}.${randomBytes(12).toString('base64url')}`,
    ...times,
    ...(grant.patientId === undefined ? {} : { patient: grant.patientId }),
    ...(grant.encounterId === undefined ? {} : { encounter: grant.encounterId }),
    ...(needsFhirUser(scope) ? { fhirUser: buildFhirUser(grant.fhirUserId, settings.fhirBaseUrl) } : {}),
  }
}

// A `user/` scope grants nothing without a `fhirUser` claim.
function needsFhirUser(scope: string): boolean {
  return hasScope(scope, 'fhirUser') || hasUserScope(scope)
}

export function hasUserScope(scope: string): boolean {
  return parseScopes(scope).some(one => one.kind === 'resource' && one.context === 'user')
}

/**
 * Creates a refresh token if the grant has `online_access`, which ends with the login, or `offline_access`, or is that of an
 * assistant, whose access lasts longer than a token.
 */
export async function createRefreshToken(
  db: Kysely<Schema>,
  grant: UserGrant,
  now: number,
  token = createRandomToken(),
): Promise<string | undefined> {
  const isLasting = hasScope(grant.scope, 'online_access') || hasScope(grant.scope, 'offline_access')
  if (!isLasting && grant.resource === undefined) return undefined
  const expiresAt = Math.min(grant.endsAt ?? Number.POSITIVE_INFINITY, now + LIFETIME.offlineRefresh)
  await insertRefreshToken(db, {
    token_hash: sha256(token),
    grant_id: grant.id,
    created_at: now,
    expires_at: expiresAt,
    used_at: null,
    request_hash: null,
    successor_hash: null,
    successor_sealed: null,
  })
  return token
}

const insertRefreshToken = prepareInsert('refresh_token')

/** Records the last use of a grant, for `/manage` and for deleting old grants. */
export const touchGrant = prepareQuery((db, { id, now }: { id: string; now: number }) =>
  db.updateTable('grant').set({ last_used_at: now }).where('id', '=', id),
)
