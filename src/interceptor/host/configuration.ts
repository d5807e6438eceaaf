import { createCachedFetch } from '../../cache/index.ts'
import { describeError, type Fetch, MINUTE_MS } from '../../core/index.ts'
import { failFor, type Refused } from '../../fhir/index.ts'
import { refuse } from '../refuse.ts'

export interface ConfigurationResponse {
  readonly allowed: true
  readonly body: string
}

export interface ConfigurationOptions {
  /** The auth server that issues the tokens. */
  readonly authUrl: string
  /** A document to serve instead of the auth server's. */
  readonly given: object | undefined
  readonly fetch: Fetch
  readonly clock: () => number
  readonly onError: ((error: unknown) => void) | undefined
}

export const CONFIGURATION_HEADERS = {
  'content-type': 'application/json; charset=utf-8',
  'cache-control': 'public, max-age=300',
} as const

/** Pages of other origins may read it, unless the host has its own CORS rules. */
export const ANY_ORIGIN = ['access-control-allow-origin', '*'] as const

const FRESH_MS = 5 * MINUTE_MS
// Limits how often anonymous requests make us ask the auth server.
const RETRY_MS = 2_000
const TIMEOUT_MS = 5_000

/**
 * Reads the SMART configuration of the FHIR base (SMART 2.2, conformance) from the auth server when it is first needed.
 * The last document stays in use while the auth server is unreachable.
 */
export function createConfigurationReader(
  options: ConfigurationOptions,
): () => Promise<ConfigurationResponse | Refused> {
  const { authUrl, given, fetch, clock, onError } = options
  const url = `${authUrl}/.well-known/smart-configuration`
  if (given) {
    const response: ConfigurationResponse = { allowed: true, body: JSON.stringify(given) }
    return async () => response
  }

  async function requestConfiguration(): Promise<ConfigurationResponse> {
    const response = await fetch(url, {
      headers: { accept: 'application/json' },
      redirect: 'error',
      signal: AbortSignal.timeout(TIMEOUT_MS),
    })
    if (!response.ok) throw new Error(`the response status is ${response.status}`)
    return { allowed: true, body: JSON.stringify(checkIssuer(authUrl, await response.json())) }
  }

  const cache = createCachedFetch<ConfigurationResponse | undefined>({
    clock,
    async fetch(_url, previous) {
      try {
        return { value: await requestConfiguration(), freshForMs: FRESH_MS }
      } catch (error) {
        onError?.(new Error(`Cannot use ${url}: ${describeError(error)}`, { cause: error }))
        return { value: previous?.value, freshForMs: RETRY_MS }
      }
    },
  })

  return async () => {
    // A caller waits only for the first one.
    const current = cache.get(url)
    return cache.peek(url)?.value ?? (await current) ?? refuse(failFor('no-configuration'))
  }
}

// Tokens of another issuer would be refused here.
function checkIssuer(authUrl: string, document: unknown): unknown {
  const { issuer, token_endpoint } = Object(document) as Readonly<Record<string, unknown>>
  if (issuer !== authUrl || typeof token_endpoint !== 'string')
    throw new Error(`it names another issuer than ${authUrl}, or no token endpoint`)
  return document
}
