/**
 * The access token of a backend service (SMART 2.2): requested with the secret or the private key of a client, and used until
 * it is about to expire.
 */

import { type KeyObject, randomUUID } from 'node:crypto'
import { createCachedFetch, type Fetched } from '../cache/index.ts'
import { type Fetch, parseJson, readText, readWhole, toRecord } from '../core/index.ts'
import { signJwt } from '../jwt/index.ts'

/** How a client authenticates: by its secret, or by the private key of a key set that it is registered with. */
export type ClientCredential =
  | { readonly secret: string }
  | {
      readonly secret?: undefined
      readonly kid: string
      readonly alg: 'RS384' | 'ES384'
      readonly privateKey: KeyObject
    }

interface ClientTokenOptions {
  readonly tokenUrl: string
  readonly clientId: string
  readonly credential: ClientCredential
  /** By default what the client is registered for. */
  readonly scope?: string | undefined
  readonly fetch: Fetch
  readonly clock: () => number
  readonly timeoutMs?: number
  /** The message of the error if the response has no token. */
  readonly describeRefusal?: (response: ResponseWithoutToken) => string
}

export interface ResponseWithoutToken {
  readonly status: number
  /** Undefined if it is not JSON, or is too long. */
  readonly body: unknown
  /** The OAuth error (RFC 6749, 5.2). */
  readonly error: string | undefined
}

export interface ClientToken {
  /** The Authorization header. Rejects if the auth server issues no token. */
  getAuthorization(): string | Promise<string>
  /** Call it if the token was refused. */
  forget(): void
}

const TIMEOUT_MS = 10_000
/** Bytes of the response (docs/limits.md). */
const RESPONSE_BYTES = 64 * 1024
const ASSERTION_SECONDS = 60
/** Of a response that does not say when the token expires. */
const DEFAULT_SECONDS = 60
/** A token is replaced before it expires: it must not expire on the way. */
const EARLY_MS = 30_000

export function createClientToken(options: ClientTokenOptions): ClientToken {
  const { tokenUrl, clientId, credential, scope, fetch, clock, timeoutMs = TIMEOUT_MS } = options
  const {
    describeRefusal = ({ status, error = '' }) =>
      `Cannot get a token for ${scope} as ${clientId}: ${status} ${error}`,
  } = options

  async function request(): Promise<Fetched<string>> {
    const { headers, parameters } = await authenticate()
    const response = await fetch(tokenUrl, {
      method: 'POST',
      headers: { accept: 'application/json', ...headers },
      body: new URLSearchParams({
        grant_type: 'client_credentials',
        ...(scope !== undefined && { scope }),
        ...parameters,
      }),
      redirect: 'error',
      signal: AbortSignal.timeout(timeoutMs),
    })
    const bytes = await readWhole(response.body, RESPONSE_BYTES)
    const body = parseJson(bytes?.toString() ?? '')
    const { access_token: token, expires_in: seconds, error } = toRecord(body)
    if (!response.ok || typeof token !== 'string')
      throw new Error(describeRefusal({ status: response.status, body, error: readText(error) }))
    const lifetime = typeof seconds === 'number' ? seconds : DEFAULT_SECONDS
    return { value: `Bearer ${token}`, freshForMs: lifetime * 1000 - EARLY_MS }
  }

  const issued = createCachedFetch({ fetch: request, clock })
  return {
    getAuthorization: () => issued.get(tokenUrl),
    forget: () => issued.forget(tokenUrl),
  }

  async function authenticate() {
    if (credential.secret !== undefined) {
      // RFC 6749, 2.3.1.
      const pair = [clientId, credential.secret].map(encodeURIComponent).join(':')
      return { headers: { authorization: `Basic ${Buffer.from(pair).toString('base64')}` } }
    }
    const { kid, alg, privateKey } = credential
    const now = Math.floor(clock() / 1000)
    const claims = {
      iss: clientId,
      sub: clientId,
      aud: tokenUrl,
      jti: randomUUID(),
      iat: now,
      exp: now + ASSERTION_SECONDS,
    }
    return {
      parameters: {
        client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
        client_assertion: await signJwt({ alg, typ: 'JWT', kid }, claims, privateKey),
      },
    }
  }
}
