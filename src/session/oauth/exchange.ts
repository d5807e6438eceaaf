import { authorizationCodeGrant, type ServerMetadata } from 'openid-client'
import type { AppContext } from '../context.ts'
import { createOAuthClient } from './client.ts'
import { type OAuthProblem, toOAuthProblem } from './errors.ts'
import { describeTokenFault, readTokenGrant, type TokenGrant } from './token-grant.ts'

/** Who signed in, by the validated id_token. */
export interface Identity {
  readonly subject: string
  readonly fhirUser: string | null
  readonly name: string | null
}

export type Exchange =
  | { readonly kind: 'granted'; readonly grant: TokenGrant; readonly identity: Identity | undefined }
  | OAuthProblem
  /** What the browser brought did not pass (issuer, a part that is missing or there twice): nobody was asked for tokens. */
  | { readonly kind: 'bad-callback'; readonly code: string; readonly check: string }

export interface ExchangeRequest {
  readonly fhirBaseUrl: string
  readonly metadata: ServerMetadata
  /** The address that the browser came back to, with its query. */
  readonly callbackUrl: URL
  readonly state: string
  readonly nonce: string
  readonly codeVerifier: string
}

/** Checks the authorization response (state, RFC 9207 issuer, error) and buys tokens with the code. */
export async function exchangeCode(context: AppContext, request: ExchangeRequest): Promise<Exchange> {
  let asked = false
  const fetch: typeof globalThis.fetch = (input, init) => {
    asked = true
    return context.fetch(input, init)
  }
  try {
    const response = await redeem({ ...context, fetch }, request)
    const grant = readTokenGrant(response)
    if (!grant) return { kind: 'unacceptable', code: 'TOKEN_RESPONSE', check: describeTokenFault(response) }
    return { kind: 'granted', grant, identity: identityOf(response.claims()) }
  } catch (error) {
    const problem = toOAuthProblem(error)
    return !asked && problem.kind === 'unacceptable' && problem.code === 'OAUTH_INVALID_RESPONSE'
      ? { kind: 'bad-callback', code: problem.code, check: problem.check }
      : problem
  }
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
  if (!asksForIdentity(context.settings.app.scope))
    return authorizationCodeGrant(client, request.callbackUrl, { expectedState, pkceCodeVerifier })
  try {
    const checks = { expectedState, pkceCodeVerifier, expectedNonce, idTokenExpected: true }
    return await authorizationCodeGrant(client, request.callbackUrl, checks)
  } catch (error) {
    if (!(answered && (await grantsNoIdentity(answered.clone())))) throw error
    // `openid` was asked for and not granted: the same answer, read as plain OAuth. A code is never sent twice.
    const again = await createOAuthClient(
      context,
      request.fhirBaseUrl,
      request.metadata,
      async () => answered as Response,
    )
    return authorizationCodeGrant(again, request.callbackUrl, { expectedState, pkceCodeVerifier })
  }
}

function asksForIdentity(scope: string): boolean {
  return scope.split(' ').includes('openid')
}

/** True for a token response that says itself that `openid` is not among what was granted. */
async function grantsNoIdentity(response: Response): Promise<boolean> {
  if (!response.ok) return false
  const body: unknown = await response.json().catch(() => undefined)
  if (typeof body !== 'object' || body === null || 'id_token' in body) return false
  return 'scope' in body && typeof body.scope === 'string' && !asksForIdentity(body.scope)
}

function identityOf(claims: unknown): Identity | undefined {
  if (typeof claims !== 'object' || claims === null || !('sub' in claims)) return undefined
  return {
    subject: String(claims.sub),
    fhirUser: 'fhirUser' in claims && typeof claims.fhirUser === 'string' ? claims.fhirUser : null,
    name: 'name' in claims && typeof claims.name === 'string' ? claims.name : null,
  }
}
