import type { Pool } from 'undici'
import { createCachedFetch, type Fetched } from '../../../cache/index.ts'
import { describeError, type Fetch, fail, isFailure, isRecord, parseJson } from '../../../core/index.ts'
import { TOKEN_RESPONSE_BYTES } from '../limits.ts'
import {
  type ExchangeOptions,
  exchange,
  type RawResponse,
  type TransportFailure,
  type UpstreamRequest,
} from './exchange.ts'

export interface SendOptions {
  readonly pool: Pool
  /** The path of the upstream's base URL, without a trailing slash. */
  readonly basePath: string
  readonly credentials: Credentials
  readonly responseLimit: number
}

/** Sends a request with the credentials of the gateway, once. */
export function sendOnce(
  request: UpstreamRequest,
  { pool, basePath, credentials }: SendOptions,
  options: ExchangeOptions,
): Promise<RawResponse | TransportFailure> {
  const path = joinPath(basePath, request.path)
  const signed = authorize(request, credentials)
  return signed instanceof Promise
    ? signed.then(it => (isFailure(it) ? it : exchange(pool, it, path, options)))
    : exchange(pool, signed, path, options)
}

function authorize(
  request: UpstreamRequest,
  credentials: Credentials,
): UpstreamRequest | Promise<UpstreamRequest | TransportFailure> {
  const held = credentials.getAuthorization()
  if (!(held instanceof Promise)) return addAuthorization(request, held)
  return held.then(
    it => addAuthorization(request, it),
    error => fail({ reason: 'unsigned', cause: describeError(error) }),
  )
}

function addAuthorization(request: UpstreamRequest, authorization: string | undefined): UpstreamRequest {
  return authorization === undefined
    ? request
    : { ...request, headers: { ...request.headers, authorization } }
}

/** The path of a base URL without one is `/`. */
function joinPath(basePath: string, path: string): string {
  const whole = basePath + path
  return whole.startsWith('/') ? whole : `/${whole}`
}

/** How the gateway authenticates to the upstream. A client certificate (mTLS) may be added to each. */
export type UpstreamAuth =
  | { readonly kind: 'none' }
  | { readonly kind: 'bearer'; readonly token: string }
  | { readonly kind: 'basic'; readonly username: string; readonly password: string }
  | {
      readonly kind: 'client-credentials'
      readonly tokenUrl: string
      readonly clientId: string
      readonly clientSecret: string
      readonly scope?: string | undefined
    }

interface Credentials {
  /** The Authorization header, or undefined for none. Rejects if no token can be fetched. */
  getAuthorization(): string | undefined | Promise<string>
  /** The upstream has refused the header: the next call fetches a new token. */
  forget(): void
}

interface CredentialsOptions {
  readonly auth: UpstreamAuth
  readonly fetch: Fetch
  readonly clock: () => number
  readonly timeoutMs: number
}

// A token must not expire on the way.
const SPARE_MS = 30_000
const DEFAULT_SECONDS = 60

export function createCredentials(options: CredentialsOptions): Credentials {
  const { auth } = options
  switch (auth.kind) {
    case 'none':
      return createFixedCredentials(undefined)
    case 'bearer':
      return createFixedCredentials(`Bearer ${auth.token}`)
    case 'basic':
      return createFixedCredentials(
        `Basic ${Buffer.from(`${auth.username}:${auth.password}`).toString('base64')}`,
      )
    case 'client-credentials':
      return createClientCredentials(auth, options)
  }
}

function createFixedCredentials(header: string | undefined): Credentials {
  return { getAuthorization: () => header, forget: () => undefined }
}

type ClientCredentials = Extract<UpstreamAuth, { readonly kind: 'client-credentials' }>

/** RFC 6749, 4.4: one token for all requests, fetched once. */
function createClientCredentials(
  auth: ClientCredentials,
  { fetch, clock, timeoutMs }: CredentialsOptions,
): Credentials {
  async function fetchToken(): Promise<Fetched<string>> {
    const form = new URLSearchParams({ grant_type: 'client_credentials' })
    if (auth.scope !== undefined) form.set('scope', auth.scope)
    const response = await fetch(auth.tokenUrl, {
      method: 'POST',
      redirect: 'error',
      headers: { accept: 'application/json', authorization: buildBasicHeader(auth) },
      body: form,
      signal: AbortSignal.timeout(timeoutMs),
    })
    const body = await readJson(response)
    const { access_token, expires_in, error } = isRecord(body) ? body : {}
    if (!response.ok || typeof access_token !== 'string')
      throw new Error(`Cannot get an access token for the upstream: ${describeFault(response, body, error)}`)
    const seconds = typeof expires_in === 'number' ? expires_in : DEFAULT_SECONDS
    return { value: `Bearer ${access_token}`, freshForMs: seconds * 1000 - SPARE_MS }
  }

  const cache = createCachedFetch({ fetch: fetchToken, clock })
  return {
    getAuthorization: () => cache.get(auth.tokenUrl),
    forget: () => cache.forget(auth.tokenUrl),
  }
}

/** Undefined if the body is not JSON or is too long. */
async function readJson({ body }: Response): Promise<unknown> {
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of body ?? []) {
    length += chunk.length
    if (length > TOKEN_RESPONSE_BYTES) return undefined
    chunks.push(chunk)
  }
  return parseJson(Buffer.concat(chunks).toString())
}

/** Describes an invalid response of the token endpoint by its OAuth error (RFC 6749, 5.2), and nothing else of it. */
function describeFault({ ok, status }: Response, body: unknown, error: unknown): string {
  if (ok) return isRecord(body) ? 'its token response has no access_token' : 'its token response is not JSON'
  const code = typeof error === 'string' && /^[\w-]{1,64}$/.test(error) ? ` with ${error}` : ''
  return `its token endpoint answered ${status}${code}`
}

// RFC 6749, 2.3.1: both are form-encoded before they are joined.
function buildBasicHeader({ clientId, clientSecret }: ClientCredentials): string {
  const encoded = `${encodeURIComponent(clientId)}:${encodeURIComponent(clientSecret)}`
  return `Basic ${Buffer.from(encoded).toString('base64')}`
}
