/**
 * The access token of a backend service (SMART 2.2): requested with the secret or the private key of a client, and used until
 * it is about to expire.
 */

import { type KeyObject, randomUUID } from 'node:crypto'
import { type Fetch, isRecord } from '../core/index.ts'
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
  readonly scope: string
  readonly fetch: Fetch
  readonly clock: () => number
}

export interface ClientToken {
  /** Rejects if the auth server issues none. */
  get(): Promise<string>
  /** Call it if the token was refused. */
  forget(): void
}

const TIMEOUT_MS = 10_000
const ASSERTION_SECONDS = 60
/** A token is replaced before it expires. */
const EARLY_MS = 30_000

export function createClientToken(options: ClientTokenOptions): ClientToken {
  const { tokenUrl, clientId, credential, scope, fetch, clock } = options
  let issued: { readonly token: string; readonly goodUntil: number } | undefined

  async function request(): Promise<string> {
    const { headers, parameters } = await authenticate(options)
    const response = await fetch(tokenUrl, {
      method: 'POST',
      headers: { accept: 'application/json', ...headers },
      body: new URLSearchParams({ grant_type: 'client_credentials', scope, ...parameters }),
      redirect: 'error',
      signal: AbortSignal.timeout(TIMEOUT_MS),
    })
    const body: unknown = await response.json().catch(() => undefined)
    const { access_token: token, expires_in: seconds, error } = isRecord(body) ? body : {}
    if (!response.ok || typeof token !== 'string')
      throw new Error(
        `Cannot get a token for ${scope} as ${clientId}: ${response.status} ${typeof error === 'string' ? error : ''}`,
      )
    issued = { token, goodUntil: clock() + Number(seconds) * 1000 - EARLY_MS }
    return token
  }

  return {
    get: async () => (issued && clock() < issued.goodUntil ? issued.token : request()),
    forget() {
      issued = undefined
    },
  }

  async function authenticate({ tokenUrl: audience }: ClientTokenOptions) {
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
      aud: audience,
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
