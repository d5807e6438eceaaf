import type { FastifyReply } from 'fastify'
import type { Kysely } from 'kysely'
import { type Failed, fail, isFailure } from '../../core/index.ts'
import type { Schema } from '../../store/index.ts'
import { type Fault, makeFault } from '../base/fault.ts'
import { findClient } from './clients/client.ts'
import type { AuthContext } from './context.ts'
import { findLiveGrant, type UserGrant } from './grants/grant.ts'
import { verifyOwnJwt } from './keys/key-ring.ts'
import { isClientTokenPrefix, isRevoked, makeClientTokenPrefix } from './revoked-tokens.ts'

/** A valid access token of this server. */
export interface AccessToken {
  readonly claims: Readonly<Record<string, unknown>>
  readonly id: string
  readonly clientId: string
  readonly scope: string
  /** In seconds, as in the token. */
  readonly expiresAt: number
  /** Undefined for a backend service's token. */
  readonly grant: UserGrant | undefined
}

/**
 * Checks an access token of this server: it has not expired or been revoked, and its client and grant still exist. By default
 * for the FHIR base. The fault is for the log.
 */
export async function checkAccessToken(
  context: AuthContext,
  token: string,
  ...audiences: readonly string[]
): Promise<AccessToken | Fault> {
  const { settings, keys, clock } = context
  const claims = verifyOwnJwt(token, 'at+jwt', await keys.listPublicKeys())
  if (!claims) return makeFault('token-not-ours')
  if (claims.iss !== settings.issuerUrl)
    return makeFault('token-of-another-issuer', { expected: settings.issuerUrl })
  const expected = audiences.length === 0 ? [settings.fhirBaseUrl] : audiences
  if (!expected.some(audience => claims.aud === audience))
    return makeFault('token-for-another-audience', { expected: expected.join(' or ') })
  const { jti, client_id: clientId, scope, exp } = claims
  if (typeof jti !== 'string' || typeof clientId !== 'string' || typeof scope !== 'string')
    return makeFault('token-incomplete')
  if (typeof exp !== 'number' || exp * 1000 <= clock()) return makeFault('token-expired')
  const found = { claims, id: jti, clientId, scope, expiresAt: exp }
  const issuedFor = await findIssuedFor(context.store.db, context, found)
  return isFailure(issuedFor) ? issuedFor : { ...found, ...issuedFor }
}

/** Finds the grant of a verified token; a backend service has none. Fails if the token has ended. */
export async function findIssuedFor(
  db: Kysely<Schema>,
  context: Pick<AuthContext, 'rules' | 'clock'>,
  { id, clientId }: Pick<AccessToken, 'id' | 'clientId'>,
): Promise<Pick<AccessToken, 'grant'> | Fault> {
  if (await isRevoked({ db }, id)) return makeFault('token-revoked')
  // Not by `sub`: the id of a client may be that of a user.
  const [issuedFor = ''] = id.split('.')
  if (isClientTokenPrefix(issuedFor)) {
    const client = await findClient(db, context, clientId)
    return client && issuedFor === makeClientTokenPrefix(client)
      ? { grant: undefined }
      : makeFault('token-without-client')
  }
  const grant = await findLiveGrant(db, context, issuedFor)
  return grant?.clientId === clientId ? { grant } : makeFault('token-without-grant')
}

/**
 * Whether the grant of a token that this server signed has ended, so that no renewal can succeed. An app that asks needs no
 * refused renewal to find out.
 */
export async function hasGrantEnded(context: AuthContext, authorization = ''): Promise<boolean> {
  if (!isBearer(authorization)) return false
  const claims = verifyOwnJwt(readBearer(authorization), 'at+jwt', await context.keys.listPublicKeys())
  const [grantId = ''] = typeof claims?.jti === 'string' ? claims.jti.split('.') : []
  if (grantId === '' || isClientTokenPrefix(grantId)) return false
  return (await findLiveGrant(context.store.db, context, grantId)) === undefined
}

/** RFC 6750, 3.1. `login-required`: the user was inactive for too long. `grant-ended`: the user signed out, for example. */
export type BearerError =
  | 'no-token'
  | 'invalid-token'
  | 'login-required'
  | 'grant-ended'
  | 'insufficient-scope'

export interface BearerFailure extends Failed {
  readonly reason: BearerError
}

/** Verifies the access token of an Authorization header (RFC 6750, 2.1); never one in a query or a form. */
export async function authenticateBearer(
  context: AuthContext,
  authorization: string | undefined,
  ...audiences: readonly string[]
): Promise<AccessToken | BearerFailure> {
  if (authorization === undefined || !isBearer(authorization)) return fail({ reason: 'no-token' })
  const found = await checkAccessToken(context, readBearer(authorization), ...audiences)
  return isFailure(found) ? fail({ reason: 'invalid-token' }) : found
}

export function isBearer(authorization: string | undefined): boolean {
  return authorization !== undefined && /^bearer +\S/i.test(authorization)
}

function readBearer(authorization: string): string {
  return authorization.slice('bearer'.length).trim()
}

/** `scope` is the scope that the request needs. */
export function sendBearerError(
  reply: FastifyReply,
  error: BearerError,
  scope: string,
  statusForScope: 401 | 403 = 403,
): FastifyReply {
  const isScope = error === 'insufficient-scope'
  reply.log.info({ check: error, ...(isScope && { expected: scope }) }, 'Bearer token refused')
  const { challenge, code, text } = describeBearerError(error, scope)
  return reply
    .code(isScope ? statusForScope : 401)
    .header('www-authenticate', `Bearer realm="sallyport"${challenge}`)
    .send({ error: code, error_description: text })
}

function describeBearerError(error: BearerError, scope: string) {
  switch (error) {
    case 'no-token':
      return { challenge: '', code: 'invalid_request', text: 'The request carries no access token.' }
    case 'invalid-token':
      return {
        challenge: ', error="invalid_token"',
        code: 'invalid_token',
        text: 'The access token is expired, revoked or from another issuer.',
      }
    case 'login-required':
      return {
        challenge: ', error="invalid_token"',
        code: 'login_required',
        text: 'The user was inactive for too long and must sign in again.',
      }
    case 'grant-ended':
      return {
        challenge: ', error="invalid_token"',
        code: 'invalid_grant',
        text: 'The access has ended: the user signed out, or it was revoked or expired.',
      }
    case 'insufficient-scope':
      return {
        challenge: `, error="insufficient_scope", scope="${scope}"`,
        code: 'insufficient_scope',
        text: `The access token lacks the scope ${scope}.`,
      }
  }
}
