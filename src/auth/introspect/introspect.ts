import { sha256 } from '../../store/index.ts'
import { type AccessToken, checkAccessToken } from '../access/read-access-token.ts'
import { fhirUserOf } from '../clinician/clinician.ts'
import type { AuthContext } from '../context.ts'
import { contextMembers } from '../grant/context-members.ts'
import { findLiveGrant, type Grant, hasScope } from '../grant/grant.ts'

/** What a token means (RFC 7662, 2.2), or that it means nothing. */
export type Introspection =
  | { readonly active: false }
  | ({ readonly active: true } & Readonly<Record<string, unknown>>)

const INACTIVE: Introspection = { active: false }

/**
 * Which tokens the asker may look at: all of one client, or the access tokens of any. A resource server is shown access
 * tokens only, so it learns nothing of refresh tokens.
 */
export type Sight =
  | { readonly kind: 'own'; readonly clientId: string }
  | { readonly kind: 'any-access-token' }

/**
 * Looks at an access or refresh token. What the asker may not see is as inactive as what is not there; which of the two
 * it is, and which check the token did not pass, only the log tells.
 */
export async function introspect(
  context: AuthContext,
  sight: Sight,
  token: string,
  onInactive: (check: string) => void,
): Promise<Introspection> {
  const access = await checkAccessToken(context, token)
  if (typeof access === 'string' && sight.kind === 'any-access-token') {
    onInactive(access)
    return INACTIVE
  }
  const found =
    typeof access === 'string' ? await ofRefreshToken(context, token) : ofAccessToken(context, access)
  if (found.active && sight.kind === 'own' && found.client_id !== sight.clientId) {
    onInactive('client_id, it is a token of another client')
    return INACTIVE
  }
  if (!found.active) onInactive(`${access}, nor is it a live refresh token`)
  return found
}

function ofAccessToken(context: AuthContext, { claims, grant, expiresAt }: AccessToken): Introspection {
  const { iss, sub, aud, client_id, scope, jti, iat } = claims
  return {
    active: true,
    token_type: 'Bearer',
    ...{ iss, sub, aud, client_id, scope, jti, iat },
    exp: expiresAt,
    ...(grant
      ? { ...userOf(context, grant, String(scope)), ...contextMembers(context.settings, grant) }
      : {}),
  }
}

async function ofRefreshToken(context: AuthContext, token: string): Promise<Introspection> {
  const { store, clock, settings } = context
  const row = await store.db
    .selectFrom('refresh_token')
    .select(['grant_id', 'created_at', 'expires_at'])
    .where('token_hash', '=', sha256(token))
    .where('used_at', 'is', null)
    .where('expires_at', '>', clock())
    .executeTakeFirst()
  const grant = row && (await findLiveGrant(store.db, row.grant_id, clock()))
  if (!row || !grant) return INACTIVE
  return {
    active: true,
    iss: settings.issuerUrl,
    sub: grant.clinician.id,
    client_id: grant.clientId,
    scope: grant.scope,
    iat: Math.floor(row.created_at / 1000),
    exp: Math.floor(row.expires_at / 1000),
    ...userOf(context, grant, grant.scope),
    ...contextMembers(context.settings, grant),
  }
}

function userOf({ settings }: AuthContext, { clinician }: Grant, scope: string) {
  return hasScope(scope, 'fhirUser')
    ? { fhirUser: fhirUserOf(clinician.fhirUserId, settings.fhirBaseUrl) }
    : {}
}
