import type { Pool } from 'undici'
import { createClientToken, type ResponseWithoutToken } from '../../../client-token/index.ts'
import { describeError, type Fetch, fail, isFailure, isRecord } from '../../../core/index.ts'
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
      return createClientToken({
        ...options,
        ...auth,
        credential: { secret: auth.clientSecret },
        describeRefusal: response =>
          `Cannot get an access token for the upstream: ${describeFault(response)}`,
      })
  }
}

function createFixedCredentials(header: string | undefined): Credentials {
  return { getAuthorization: () => header, forget: () => undefined }
}

/** Describes an invalid response of the token endpoint by its OAuth error, and nothing else of it. */
function describeFault({ status, body, error = '' }: ResponseWithoutToken): string {
  if (status < 300)
    return isRecord(body) ? 'its token response has no access_token' : 'its token response is not JSON'
  return `its token endpoint answered ${status}${/^[\w-]{1,64}$/.test(error) ? ` with ${error}` : ''}`
}
