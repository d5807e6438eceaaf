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
  let held: Configured | undefined = given && { allowed: true, body: JSON.stringify(given) }
  let due = held ? Number.POSITIVE_INFINITY : Number.NEGATIVE_INFINITY
  let flight: Promise<void> | undefined

  async function refresh(): Promise<void> {
    due = clock() + RETRY_MS
    try {
      const url = `${authUrl}/.well-known/smart-configuration`
      const response = await fetch(url, {
        headers: { accept: 'application/json' },
        redirect: 'error',
        signal: AbortSignal.timeout(TIMEOUT_MS),
      })
      if (!response.ok) throw new Error(`Cannot read ${url}: it answers ${response.status}`)
      held = { allowed: true, body: JSON.stringify(ofIssuer(authUrl, await response.json())) }
      due = clock() + FRESH_MS
    } catch (error) {
      onError?.(error)
    } finally {
      flight = undefined
    }
  }

  return async () => {
    if (clock() >= due) flight ??= refresh()
    if (!held) await flight
    return held ?? refuse({ kind: 'no-configuration' })
  }
}

// Apps that it leads elsewhere would come back with tokens that are refused here.
function ofIssuer(authUrl: string, document: unknown): unknown {
  const { issuer, token_endpoint } = Object(document) as Readonly<Record<string, unknown>>
  if (issuer !== authUrl || typeof token_endpoint !== 'string')
    throw new Error(`Cannot use the SMART configuration of ${authUrl}: it is not of this issuer`)
  return document
}
