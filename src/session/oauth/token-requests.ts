import {
  authorizationCodeGrant,
  refreshTokenGrant,
  type ServerMetadata,
  tokenRevocation,
} from 'openid-client'
import { type AppFailure, failApp } from '../../app-reasons/index.ts'
import { isFailure } from '../../core/index.ts'
import type { Result, SessionFailure } from '../failure.ts'
import { openTokens, type Session, type Tokens } from '../session.ts'
import { createOAuthClient, keepKeySet, type OAuthFailure, toOAuthFailure } from './client.ts'
import type { AppContext } from './context.ts'
import { describeTokenFault, type ReceivedGrant, readTokenGrant } from './token-grant.ts'

export interface Identity {
  readonly subject: string
  readonly fhirUser: string | null
  readonly name: string | null
}

export interface ReceivedTokens {
  readonly grant: ReceivedGrant
  readonly identity: Identity | undefined
}

/** The authorization response failed a check (issuer, missing or repeated parameter). No token request was sent. */
type BadCallback = AppFailure<'callback-malformed'>

interface ExchangeRequest {
  readonly fhirBaseUrl: string
  readonly metadata: ServerMetadata
  readonly callbackUrl: URL
  readonly state: string
  readonly nonce: string
  readonly codeVerifier: string
  /** Also the id of the token request, so that the reference of an error page finds both. */
  readonly requestId: string
}

/** Checks the authorization response (state, RFC 9207 issuer, error) and exchanges the code for tokens. */
export async function exchangeCode(
  context: AppContext,
  request: ExchangeRequest,
): Promise<ReceivedTokens | OAuthFailure | BadCallback> {
  let asked = false
  const fetch: typeof globalThis.fetch = (input, init) => {
    asked = true
    return context.fetch(input, addRequestId(init, request.requestId))
  }
  try {
    const response = await redeem({ ...context, fetch }, request)
    const grant = readTokenGrant(response)
    if (!grant)
      return failApp('sign-in-unverified', { code: 'TOKEN_RESPONSE', check: describeTokenFault(response) })
    return { grant, identity: readIdentity(response.claims()) }
  } catch (error) {
    const failure = toOAuthFailure(error)
    return !asked && failure.reason === 'sign-in-unverified' && CALLBACK_FAULTS.has(failure.facts.code)
      ? { ...failure, reason: 'callback-malformed' }
      : failure
  }
}

/** The library refuses parameters of other flows (`id_token`, `token`) as an unsupported operation. */
const CALLBACK_FAULTS: ReadonlySet<unknown> = new Set([
  'OAUTH_INVALID_RESPONSE',
  'OAUTH_UNSUPPORTED_OPERATION',
])

function addRequestId(init: RequestInit | undefined, requestId: string): RequestInit {
  const headers = new Headers(init?.headers)
  headers.set('x-request-id', requestId)
  return { ...init, headers }
}

async function redeem(context: AppContext, request: ExchangeRequest) {
  const { state: expectedState, nonce: expectedNonce, codeVerifier: pkceCodeVerifier } = request
  let answered: Response | undefined
  const client = await createOAuthClient(
    context,
    request.fhirBaseUrl,
    request.metadata,
    async (input, init) => {
      const response = await context.fetch(input, init)
      answered ??= response.clone()
      return response
    },
  )
  if (!requestsIdentity(context.settings.app.scope))
    return authorizationCodeGrant(client, request.callbackUrl, { expectedState, pkceCodeVerifier })
  try {
    const checks = { expectedState, pkceCodeVerifier, expectedNonce, idTokenExpected: true }
    const response = await authorizationCodeGrant(client, request.callbackUrl, checks)
    keepKeySet(client, request.metadata)
    return response
  } catch (error) {
    if (!(answered && (await grantsNoIdentity(answered.clone())))) throw error
    // `openid` was requested but not granted: the same response is read as plain OAuth. The code is never sent
    // twice.
    const again = await createOAuthClient(
      context,
      request.fhirBaseUrl,
      request.metadata,
      async () => answered as Response,
    )
    return authorizationCodeGrant(again, request.callbackUrl, { expectedState, pkceCodeVerifier })
  }
}

function requestsIdentity(scope: string): boolean {
  return scope.split(' ').includes('openid')
}

async function grantsNoIdentity(response: Response): Promise<boolean> {
  if (!response.ok) return false
  const body: unknown = await response.json().catch(() => undefined)
  if (typeof body !== 'object' || body === null || 'id_token' in body) return false
  return 'scope' in body && typeof body.scope === 'string' && !requestsIdentity(body.scope)
}

function readIdentity(claims: unknown): Identity | undefined {
  if (typeof claims !== 'object' || claims === null || !('sub' in claims)) return undefined
  return {
    subject: String(claims.sub),
    fhirUser: 'fhirUser' in claims && typeof claims.fhirUser === 'string' ? claims.fhirUser : null,
    name: 'name' in claims && typeof claims.name === 'string' ? claims.name : null,
  }
}

/** Returns `session-over` if the auth server refuses the refresh token. */
export async function redeemRefreshToken(
  context: AppContext,
  session: Session,
  refreshToken: string,
): Promise<Result<ReceivedGrant>> {
  const found = await context.discovery.find(session.fhirBaseUrl)
  if (isFailure(found)) return found
  // The refresh token is sent only to the auth server that issued it, even if the smart-configuration changed.
  if (found.issuer !== session.issuer)
    return refuse(context, session, `smart-configuration issuer, expected ${session.issuer}`)
  try {
    const client = await createOAuthClient(context, session.fhirBaseUrl, found)
    const response = await refreshTokenGrant(client, refreshToken)
    const grant = readTokenGrant(response)
    if (!grant) return refuse(context, session, describeTokenFault(response))
    // A refresh must not change the patient: tokens for another patient are discarded.
    if (grant.patientId !== undefined && grant.patientId !== session.patientId)
      return refuse(context, session, "token response patient, expected the session's patient")
    return grant
  } catch (error) {
    const refused = toOAuthFailure(error)
    logRefusal(context, session, refused)
    return toFailure(refused)
  }
}

function refuse(context: AppContext, session: Session, check: string): Result<ReceivedGrant> {
  logRefusal(context, session, failApp('sign-in-unverified', { code: 'TOKEN_RESPONSE', check }))
  return failApp('session-ended')
}

function logRefusal({ log }: AppContext, { sessionId }: Session, { reason, facts }: OAuthFailure): void {
  const check = facts.check ?? facts.error
  log.warn({ sessionId, reason, ...(check !== undefined && { check }) }, 'Cannot renew session tokens')
}

function toFailure({ reason }: OAuthFailure): SessionFailure {
  const isUnavailable = reason === 'auth-server-unreachable' || reason === 'auth-server-slow'
  return failApp(isUnavailable ? reason : 'session-ended')
}

type Issued = Pick<Session, 'fhirBaseUrl' | 'issuer'>

export async function revokeSession(context: AppContext, session: Session): Promise<void> {
  const tokens = openTokens(context.sealer, session)
  if (tokens) await revokeTokens(context, session, tokens)
}

/** Revokes the tokens (RFC 7009) if the auth server supports it. Never rejects. */
export async function revokeTokens(context: AppContext, issued: Issued, tokens: Tokens): Promise<void> {
  try {
    const found = await context.discovery.find(issued.fhirBaseUrl)
    if (isFailure(found) || !found.revocation_endpoint || found.issuer !== issued.issuer) return
    const client = await createOAuthClient(context, issued.fhirBaseUrl, found)
    for (const [hint, token] of orderRevocations(tokens))
      await tokenRevocation(client, token, { token_type_hint: hint })
  } catch (error) {
    context.log.warn({ err: error }, 'Cannot revoke session tokens')
  }
}

// The refresh token comes first, because it lives longer.
function orderRevocations({
  accessToken,
  refreshToken,
}: Tokens): readonly (readonly [hint: string, token: string])[] {
  return [
    ...(refreshToken === undefined ? [] : [['refresh_token', refreshToken] as const]),
    ['access_token', accessToken],
  ]
}
