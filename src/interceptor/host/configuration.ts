import { createCachedFetch } from '../../cache/index.ts'
import type { Refused } from '../../fhir/index.ts'
import { refuse } from '../refuse.ts'
import type { Fetch } from '../token/key-set.ts'

/** What `.well-known/smart-configuration` answers with. */
export interface Configured {
  readonly allowed: true
  readonly body: string
}

export interface ConfigurationOptions {
  /** The auth server whose tokens are honoured. */
  readonly authUrl: string
  /** What is told instead of the auth server's own. */
  readonly given: object | undefined
  readonly fetch: Fetch
  readonly clock: () => number
  readonly onError: ((error: unknown) => void) | undefined
}

/** Public, and the same for everybody. */
export const CONFIGURATION_HEADERS = {
  'content-type': 'application/json; charset=utf-8',
  'cache-control': 'public, max-age=300',
} as const

/** A page of another origin may read it, unless the host says otherwise. */
export const ANY_ORIGIN = ['access-control-allow-origin', '*'] as const

const FRESH_MS = 5 * 60_000
// Anybody may ask, but the auth server is not asked at anybody's pace.
const RETRY_MS = 2_000
const TIMEOUT_MS = 5_000

/**
 * The SMART configuration of the FHIR base, which apps begin with (SMART 2.2, conformance). The auth server tells it;
 * it is asked when it is first wanted, and what it said stays in use while it is away.
 */
export function configuration(options: ConfigurationOptions): () => Promise<Configured | Refused> {
  const { authUrl, given, fetch, clock, onError } = options
  const url = `${authUrl}/.well-known/smart-configuration`
  if (given) {
    const configured: Configured = { allowed: true, body: JSON.stringify(given) }
    return async () => configured
  }

  async function requestConfiguration(): Promise<Configured> {
    const response = await fetch(url, {
      headers: { accept: 'application/json' },
      redirect: 'error',
      signal: AbortSignal.timeout(TIMEOUT_MS),
    })
    if (!response.ok) throw new Error(`Cannot read ${url}: the response status is ${response.status}`)
    return { allowed: true, body: JSON.stringify(ofIssuer(authUrl, await response.json())) }
  }

  const cache = createCachedFetch<Configured | undefined>({
    clock,
    async fetch(_url, previous) {
      try {
        return { value: await requestConfiguration(), freshForMs: FRESH_MS }
      } catch (error) {
        onError?.(error)
        return { value: previous?.value, freshForMs: RETRY_MS }
      }
    },
  })

  return async () => {
    // A caller waits only for the first one.
    const current = cache.get(url)
    return cache.peek(url)?.value ?? (await current) ?? refuse({ kind: 'no-configuration' })
  }
}

// Apps that it leads elsewhere would come back with tokens that are refused here.
function ofIssuer(authUrl: string, document: unknown): unknown {
  const { issuer, token_endpoint } = Object(document) as Readonly<Record<string, unknown>>
  if (issuer !== authUrl || typeof token_endpoint !== 'string')
    throw new Error(`Cannot use the SMART configuration of ${authUrl}: it is not of this issuer`)
  return document
}
