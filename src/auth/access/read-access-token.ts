import { findClient } from '../client/client.ts'
import type { AuthContext } from '../context.ts'
import { findLiveGrant, type Grant } from '../grant/grant.ts'
import { verifyOwnJwt } from '../keys/own-jwt.ts'
import { isRevoked } from '../revoke/revocation.ts'

/** An access token of ours that is good at this moment. */
export interface AccessToken {
  readonly claims: Readonly<Record<string, unknown>>
  readonly id: string
  readonly clientId: string
  readonly scope: string
  /** In seconds, as in the token. */
  readonly expiresAt: number
  /** What it follows from; a back end's token follows from none. */
  readonly grant: Grant | undefined
}

/** Reads an access token that we issued: signed by us, not expired, not revoked, its client and grant still there. */
export async function readAccessToken(context: AuthContext, token: string): Promise<AccessToken | undefined> {
  const found = await checkAccessToken(context, token)
  return typeof found === 'string' ? undefined : found
}

/** The same, or which check the token did not pass, for the log. */
export async function checkAccessToken(context: AuthContext, token: string): Promise<AccessToken | string> {
  const { settings, keys, clock, store } = context
  const claims = verifyOwnJwt(token, 'at+jwt', await keys.published())
  if (!claims) return 'it is not an access token that this server signed'
  if (claims.iss !== settings.issuerUrl) return `iss, expected ${settings.issuerUrl}`
  if (claims.aud !== settings.fhirBaseUrl) return `aud, expected ${settings.fhirBaseUrl}`
  const { jti, client_id: clientId, scope, exp } = claims
  if (typeof jti !== 'string' || typeof clientId !== 'string' || typeof scope !== 'string')
    return 'jti, client_id or scope, expected texts'
  if (typeof exp !== 'number' || exp * 1000 <= clock()) return 'exp, it has expired'
  if (await isRevoked(store, jti)) return 'it was revoked'
  const found = { claims, id: jti, clientId, scope, expiresAt: exp }
  if (claims.sub === clientId)
    return (await findClient(store, clientId)) ? { ...found, grant: undefined } : 'its client was removed'
  const grant = await findLiveGrant(store.db, jti.split('.')[0] ?? '', clock())
  return grant?.clientId === clientId ? { ...found, grant } : 'its grant has ended'
}
