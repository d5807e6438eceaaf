import { type KeyObject, sign } from 'node:crypto'
import { rsaPair } from '../../../test/support/rsa-pair.ts'

export const authUrl = 'http://localhost:9000'
export const fhirBaseUrl = 'http://localhost:8080/fhir'

interface Key {
  readonly kid: string
  readonly privateKey: KeyObject
  readonly publicKey: KeyObject
}

// No test needs more of them at once.
const PAIRS = 8
let made = 0

/** Another key than that of `StandingAuthServer`, and than the last ones. */
export function makeKey(): Key {
  const pair = rsaPair(1 + (made++ % PAIRS))
  return { kid: `key-${made}`, ...pair }
}

const firstKey: Key = { kid: 'key-0', ...rsaPair(0) }

/** What an auth server shows the interceptor: a key set over HTTP, and tokens signed by it. Time stands still. */
export class TestIssuer {
  keys: Key[] = [firstKey]
  away = false
  requests = 0
  /** What the revocation list answers with; without it there is no such list. */
  feed: ((since: string | null) => unknown) | undefined
  now = Date.UTC(2026, 0, 1)

  readonly clock = () => this.now
  readonly fetch = async (url: string): Promise<Response> => {
    const { pathname, searchParams } = new URL(url)
    if (pathname === '/oauth2/revocations' && this.feed && !this.away)
      return Response.json(this.feed(searchParams.get('since')))
    if (pathname === '/oauth2/revocations') throw new TypeError('fetch failed')
    this.requests += 1
    if (this.away || url !== `${authUrl}/oauth2/jwks`) throw new TypeError('fetch failed')
    const keys = this.keys.map(({ kid, publicKey }) => ({
      ...publicKey.export({ format: 'jwk' }),
      kid,
      use: 'sig',
    }))
    return Response.json({ keys })
  }

  /** An access token with the claims of TOKEN-3, changed as given. */
  token(
    claims: Record<string, unknown> = {},
    header: Record<string, unknown> = {},
    key = this.#key(),
  ): string {
    const seconds = Math.floor(this.now / 1000)
    const body = {
      iss: authUrl,
      aud: fhirBaseUrl,
      sub: 'c-1',
      client_id: 'app',
      jti: 'j-1',
      iat: seconds,
      exp: seconds + 300,
      scope: 'patient/Condition.rs',
      patient: '1',
      ...claims,
    }
    const input = `${encode({ alg: 'RS256', typ: 'at+jwt', kid: key.kid, ...header })}.${encode(body)}`
    return `${input}.${sign('RSA-SHA256', Buffer.from(input), key.privateKey).toString('base64url')}`
  }

  bearer(claims: Record<string, unknown> = {}, header: Record<string, unknown> = {}): string {
    return `Bearer ${this.token(claims, header)}`
  }

  #key(): Key {
    const key = this.keys.at(-1)
    if (!key) throw new Error('Cannot sign: the auth server has no key')
    return key
  }
}

export function encode(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}
