import {
  AuthorizationResponseError,
  allowInsecureRequests,
  type ClientAuth,
  Configuration,
  clockSkew,
  customFetch,
  type ExportedJWKSCache,
  enableNonRepudiationChecks,
  getJwksCache,
  modifyAssertion,
  None,
  PrivateKeyJwt,
  ResponseBodyError,
  type ServerMetadata,
  setJwksCache,
  WWWAuthenticateChallengeError,
} from 'openid-client'
import { type AppFailure, failApp } from '../../app-reasons/index.ts'
import { fail, findCode, isTimeout } from '../../core/index.ts'
import type { AppContext } from './context.ts'

/**
 * `openid-client` for one auth server. It verifies the signature of the ID token, although the token comes from the
 * token endpoint. It allows plain http only if the FHIR base is configured with http.
 */
export async function createOAuthClient(
  context: AppContext,
  fhirBaseUrl: string,
  metadata: ServerMetadata,
  fetch: typeof globalThis.fetch = context.fetch,
): Promise<Configuration> {
  const skew = Math.round((context.clock() - Date.now()) / 1000)
  const proof = await chooseClientAuth(context, metadata)
  const client = new Configuration(metadata, context.settings.app.clientId, { [clockSkew]: skew }, proof)
  client[customFetch] = (url, options) => fetch(url, options as RequestInit)
  shareKeySet(client, metadata)
  client.timeout = Math.max(1, Math.ceil(context.authTimeoutMs / 1000))
  enableNonRepudiationChecks(client)
  if (fhirBaseUrl.startsWith('http:')) allowInsecureRequests(client)
  return client
}

/** The key sets of auth servers, for as long as their metadata is cached. */
const keySets = new WeakMap<ServerMetadata, ExportedJWKSCache>()

/** `openid-client` fetches a key set of this age again for an unknown `kid`. */
const REFETCHED_FROM_SECONDS = 60

/** Gives the client the key set that another client of the same auth server fetched. */
function shareKeySet(client: Configuration, metadata: ServerMetadata): void {
  const known = keySets.get(metadata)
  if (known) setJwksCache(client, { ...known, uat: Math.floor(Date.now() / 1000) - REFETCHED_FROM_SECONDS })
}

/** Keeps the key set with which a client verified an ID token. */
export function keepKeySet(client: Configuration, metadata: ServerMetadata): void {
  const fetched = getJwksCache(client)
  if (fetched) keySets.set(metadata, fetched)
}

async function chooseClientAuth(
  { settings, appKeys }: AppContext,
  metadata: ServerMetadata,
): Promise<ClientAuth> {
  const { token_endpoint_auth_methods_supported: methods, token_endpoint: tokenEndpoint } = metadata
  if (settings.app.authMethod === 'none' || !methods?.includes('private_key_jwt')) return None()
  const { kid, privateKey } = await appKeys.signing()
  return PrivateKeyJwt(
    { key: privateKey, kid },
    {
      // SMART 2.2, asymmetric authentication: the audience is the token endpoint.
      [modifyAssertion]: (header, claims) => {
        header.typ = 'JWT'
        claims.aud = tokenEndpoint
      },
    },
  )
}

/** The expected values of these claims are configured and may be logged. A nonce or a state may not. */
const CONFIGURED: ReadonlySet<unknown> = new Set(['aud', 'azp', 'iss'])

/**
 * Names the `openid-client` check that failed and the expected value. Of the response, only an HTTP status and a
 * URL are used.
 */
function describeFailedCheck(error: unknown): string {
  const failed = findCheck(error)
  if (!failed) return error instanceof Error ? error.name : 'unknown'
  const { message, cause } = failed
  if (cause instanceof Response) return `${message}: ${describeLocation(cause)} answered ${cause.status}`
  const expected = describeExpected(cause, message)
  return expected === undefined ? message : `${message}, expected ${expected}`
}

/**
 * Finds the innermost error of the library: outer errors say less, and inner errors (of a JSON parser) quote the
 * response.
 */
function findCheck(error: unknown): Error | undefined {
  if (!(error instanceof Error)) return undefined
  const inner = findCheck(error.cause)
  if (inner) return inner
  return findCode(error)?.startsWith('OAUTH_') ? error : undefined
}

function describeExpected(cause: unknown, message: string): string | undefined {
  if (typeof cause !== 'object' || cause === null || !('expected' in cause)) return undefined
  const { expected } = cause
  const claim = 'claim' in cause ? cause.claim : /"(\w+)"/.exec(message)?.[1]
  if (claim === 'nonce') return 'the nonce of the launch'
  if (CONFIGURED.has(claim) && typeof expected === 'string') return expected
  return claim === 'alg' && Array.isArray(expected) ? expected.join(' or ') : undefined
}

function describeLocation({ url }: Response): string {
  const { origin, pathname } = URL.parse(url) ?? { origin: 'the server', pathname: '' }
  return `${origin}${pathname}`
}

/** The auth server refused, did not answer, or its response failed a check: issuer, state, nonce, audience, signature or format. */
export type OAuthFailure =
  | Refused
  | AppFailure<'auth-server-unreachable' | 'auth-server-slow' | 'sign-in-unverified'>

/** RFC 6749, 4.1.2.1 and 5.2. */
interface Refused extends AppFailure<'auth-server-refused'> {
  readonly error: string
  readonly description: string | undefined
}

export function toOAuthFailure(error: unknown): OAuthFailure {
  if (error instanceof AuthorizationResponseError) return makeRefused(error.error, error.error_description)
  if (error instanceof ResponseBodyError)
    return error.status >= 500 || error.status === 429
      ? failApp('auth-server-unreachable')
      : makeRefused(error.error, error.error_description)
  // A 401 with a challenge: the auth server does not know this client.
  if (error instanceof WWWAuthenticateChallengeError) return makeRefused('invalid_client', undefined)
  if (isTimeout(error)) return failApp('auth-server-slow')
  if (error instanceof TypeError && error.message === 'fetch failed')
    return failApp('auth-server-unreachable')
  if (isServerFailure(error)) return failApp('auth-server-unreachable')
  return failApp('sign-in-unverified', { code: readCode(error), check: describeFailedCheck(error) })
}

function makeRefused(error: string, description: string | undefined): OAuthFailure {
  return fail({ ...failApp('auth-server-refused', { error }), error, description })
}

/** A 5xx without an OAuth body, such as a proxy sends: the library passes the response as the cause. */
function isServerFailure(error: unknown): boolean {
  return error instanceof Error && error.cause instanceof Response && error.cause.status >= 500
}

function readCode(error: unknown): string {
  return findCode(error) ?? (error instanceof Error ? error.name : 'UNKNOWN')
}
