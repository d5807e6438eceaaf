import { createPrivateKey } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import {
  allowInsecureRequests,
  type ClientAuth,
  ClientSecretBasic,
  ClientSecretPost,
  type Configuration,
  clockSkew,
  clockTolerance,
  customFetch,
  discovery,
  None,
  PrivateKeyJwt,
  type ServerMetadata,
} from 'openid-client'
import { createCachedFetch } from '../../../../cache/index.ts'
import type { OidcProvider } from '../../../../config/index.ts'
import { type Failed, fail, MINUTE_MS, readWhole } from '../../../../core/index.ts'
import {
  type Algorithm,
  type Claims,
  computeThumbprint,
  decodeJwt,
  readKeySet,
  type VerificationKey,
  verifySignature,
} from '../../../../jwt/index.ts'
import { CLOCK_TOLERANCE_SECONDS } from '../../../base/limits.ts'

const TIMEOUT_SECONDS = 5
/** How long metadata and keys are used without a new fetch. */
const METADATA_FRESH_MS = 10 * MINUTE_MS
/** How long a provider counts as reachable after a response. */
const REACHABLE_MS = 10_000
/** No second attempt within this time, so that an unreachable provider costs little. */
const PAUSE_MS = 5_000
const MAX_RESPONSE_BYTES = 512 * 1024
const ALGORITHMS: readonly Algorithm[] = ['RS256', 'RS384', 'PS256', 'ES256', 'ES384']

/** `openid-client` for one provider, and the provider's keys. */
export interface ProviderClient {
  /** Discovers the provider on first use. Undefined if that failed. */
  discover(): Promise<Configuration | undefined>
  /** Like `discover`, but undefined during an outage: a user who is redirected then sees an error of the browser. */
  reach(): Promise<Configuration | undefined>
  /** The claims of a token that a key of the provider signed. An unknown `kid` causes a new fetch of the keys. */
  verify(token: string): Promise<Claims | UnverifiedToken>
  /** The `end_session_endpoint`. Undefined if the provider has none that can be used. */
  findLogoutUrl(): Promise<URL | undefined>
}

interface UnverifiedToken extends Failed {
  readonly reason: 'invalid' | 'unreachable'
}

interface Discovery {
  /** From the last successful discovery. */
  readonly configuration: Configuration | undefined
  readonly isReachable: boolean
}

export interface ProviderClientOptions {
  readonly provider: OidcProvider
  readonly clock: () => number
  readonly onFailure: (provider: string, error: unknown) => void
}

/** Everything is fetched lazily and cached: the start of the server does not depend on the provider. */
export function createProviderClient(options: ProviderClientOptions): ProviderClient {
  const { provider, clock, onFailure } = options
  const discoveries = createCachedFetch<Discovery>({
    clock,
    async fetch(_key, previous) {
      try {
        const configuration = await discoverProvider(options)
        return { value: { configuration, isReachable: true }, freshForMs: REACHABLE_MS }
      } catch (error) {
        onFailure(provider.id, error)
        const configuration = previous?.value.configuration
        return { value: { configuration, isReachable: false }, freshForMs: PAUSE_MS }
      }
    },
  })
  const keySets = createCachedFetch<readonly VerificationKey[] | undefined>({
    clock,
    async fetch(url, previous) {
      try {
        return { value: (await fetchKeys(url)).keys, freshForMs: METADATA_FRESH_MS }
      } catch (error) {
        onFailure(provider.id, error)
        return { value: previous?.value, freshForMs: PAUSE_MS }
      }
    },
  })

  async function findKeys(url: string, kid: unknown): Promise<readonly VerificationKey[] | undefined> {
    const keys = await keySets.get(url)
    const isKnown = keys?.some(key => key.kid === kid) ?? false
    const isRecent = clock() - (keySets.peek(url)?.fetchedAt ?? 0) < PAUSE_MS
    return isKnown || isRecent ? keys : keySets.refresh(url)
  }

  async function discover(): Promise<Configuration | undefined> {
    const known = discoveries.peek(provider.id)
    const isFresh = known !== undefined && clock() - known.fetchedAt < METADATA_FRESH_MS
    const { configuration } =
      isFresh && known.value.configuration ? known.value : await discoveries.get(provider.id)
    return configuration
  }

  return {
    discover,
    async reach() {
      const { configuration, isReachable } = await discoveries.get(provider.id)
      return isReachable ? configuration : undefined
    },
    async verify(token) {
      const jwt = decodeJwt(token)
      if (!jwt) return fail({ reason: 'invalid' })
      const { jwks_uri: url } = (await discover())?.serverMetadata() ?? {}
      const keys = url === undefined ? undefined : await findKeys(url, jwt.header.kid)
      if (!keys) return fail({ reason: 'unreachable' })
      const key = keys.find(({ kid }) => kid === jwt.header.kid)
      return key && verifySignature(jwt, key) ? jwt.claims : fail({ reason: 'invalid' })
    },
    async findLogoutUrl() {
      const { end_session_endpoint: text } = (await discover())?.serverMetadata() ?? {}
      return text === undefined ? undefined : parseEndpoint(provider, text)
    },
  }
}

/** A URL in the metadata of a provider. A provider with https must not send browsers or tokens over plain http. */
function parseEndpoint({ issuer }: OidcProvider, text: unknown): URL | undefined {
  const url = typeof text === 'string' ? URL.parse(text) : null
  const isUsable = url?.protocol === 'https:' || (url?.protocol === 'http:' && issuer.startsWith('http:'))
  return url && isUsable ? url : undefined
}

async function discoverProvider(options: ProviderClientOptions): Promise<Configuration> {
  const { provider, clock } = options
  const skew = Math.round((clock() - Date.now()) / 1000)
  const metadata = { [clockSkew]: skew, [clockTolerance]: CLOCK_TOLERANCE_SECONDS }
  const proof = await chooseClientAuth(provider)
  const allowed = provider.issuer.startsWith('http:') ? [allowInsecureRequests] : []
  const configuration = await discovery(new URL(provider.issuer), provider.clientId, metadata, proof, {
    timeout: TIMEOUT_SECONDS,
    [customFetch]: (url, init) => fetchLimited(url, init as RequestInit),
    execute: allowed,
  })
  requireEndpoints(provider, configuration.serverMetadata())
  return configuration
}

/** The result of a test. */
export interface ProviderReport {
  readonly authorizationEndpoint: string
  readonly tokenEndpoint: string
  readonly keySetUrl: string
  readonly keyIds: readonly string[]
  /** How far the provider's clock is ahead of ours, by the `Date` of its response. Undefined if it states none. */
  readonly clockAheadSeconds: number | undefined
}

/** Rejects with the reason if the provider cannot be used. */
export async function checkOidcProvider(provider: OidcProvider): Promise<ProviderReport> {
  const options = { provider, clock: Date.now, onFailure: () => undefined }
  const metadata = (await discoverProvider(options)).serverMetadata()
  const { authorization_endpoint = '', token_endpoint = '', jwks_uri = '', end_session_endpoint } = metadata
  if (end_session_endpoint !== undefined && !parseEndpoint(provider, end_session_endpoint))
    throw new Error('The end_session_endpoint is not an https URL')
  const { keys, date } = await fetchKeys(jwks_uri)
  return {
    authorizationEndpoint: authorization_endpoint,
    tokenEndpoint: token_endpoint,
    keySetUrl: jwks_uri,
    keyIds: keys.flatMap(({ kid }) => kid ?? []),
    clockAheadSeconds: Number.isNaN(date) ? undefined : Math.round((date - Date.now()) / 1000),
  }
}

function requireEndpoints(provider: OidcProvider, metadata: ServerMetadata): void {
  for (const name of ['authorization_endpoint', 'token_endpoint', 'jwks_uri'] as const) {
    if (metadata[name] === undefined) throw new Error(`The discovery document has no ${name}`)
    if (!parseEndpoint(provider, metadata[name])) throw new Error(`The ${name} is not an https URL`)
  }
}

async function fetchKeys(
  url: string,
): Promise<{ readonly keys: readonly VerificationKey[]; readonly date: number }> {
  const signal = AbortSignal.timeout(TIMEOUT_SECONDS * 1000)
  const response = await fetchLimited(url, { redirect: 'manual', signal })
  if (response.status !== 200) throw new Error(`The response status of the key set is ${response.status}`)
  const keys = readKeySet(await response.json(), ALGORITHMS)
  if (!keys?.length) throw new Error('The key set has no usable key with a kid')
  return { keys, date: Date.parse(response.headers.get('date') ?? '') }
}

/** A hostile provider could send an endless response. */
async function fetchLimited(url: string, init: RequestInit): Promise<Response> {
  const response = await fetch(url, init)
  const body = await readWhole(response.body, MAX_RESPONSE_BYTES)
  if (!body) throw new Error('The response is too long')
  const { status, headers } = response
  const isWithout = status === 204 || status === 304 || status < 200
  return new Response(isWithout ? null : new Uint8Array(body), { status, headers })
}

/** The files are read at each discovery, so that a replaced secret takes effect without a restart. */
async function chooseClientAuth(provider: OidcProvider): Promise<ClientAuth> {
  const { clientSecret, clientSecretFile, clientKeyFile } = provider
  if (clientKeyFile !== undefined) return createKeyAuth(await readFile(clientKeyFile, 'utf8'))
  const secret =
    clientSecretFile === undefined ? clientSecret : (await readFile(clientSecretFile, 'utf8')).trim()
  return secret === undefined ? None() : createSecretAuth(secret)
}

/** OIDC Core, 9: a provider that names no methods expects `client_secret_basic`. */
function createSecretAuth(secret: string): ClientAuth {
  const basic = ClientSecretBasic(secret)
  const post = ClientSecretPost(secret)
  return (server, ...rest) => {
    const methods = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic']
    const isPost = methods.includes('client_secret_post') && !methods.includes('client_secret_basic')
    return (isPost ? post : basic)(server, ...rest)
  }
}

const KEY_IMPORTS = {
  rsa: { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' },
  prime256v1: { name: 'ECDSA', namedCurve: 'P-256' },
  secp384r1: { name: 'ECDSA', namedCurve: 'P-384' },
} as const

/** `private_key_jwt` with a PEM or JWK file. Without a `kid`, the key's thumbprint identifies it. */
async function createKeyAuth(text: string): Promise<ClientAuth> {
  const jwk = text.trimStart().startsWith('{') ? JSON.parse(text) : undefined
  const key = createPrivateKey(jwk ? { key: jwk, format: 'jwk' } : text)
  const { n = '', e = '', crv = '', x = '', y = '', kty } = key.export({ format: 'jwk' })
  const thumbprint = computeThumbprint(kty === 'RSA' ? { kty, n, e } : { kty: 'EC', crv, x, y })
  const type = key.asymmetricKeyType === 'rsa' ? 'rsa' : key.asymmetricKeyDetails?.namedCurve
  const algorithm = KEY_IMPORTS[type as keyof typeof KEY_IMPORTS]
  if (algorithm === undefined) throw new Error('The client key is neither RSA, P-256 nor P-384')
  const pkcs8 = key.export({ format: 'der', type: 'pkcs8' })
  const cryptoKey = await crypto.subtle.importKey('pkcs8', pkcs8, algorithm, false, ['sign'])
  return PrivateKeyJwt({ key: cryptoKey, kid: typeof jwk?.kid === 'string' ? jwk.kid : thumbprint })
}
