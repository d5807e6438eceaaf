import type { ServerMetadata } from 'openid-client'
import { createCachedFetch } from '../../cache/index.ts'
import { plainOf } from '../../fhir/index.ts'
import { fail, type Result, succeed } from '../failure.ts'
import { fetchJson } from '../fetch-json.ts'
import { describeConfigurationFault, readSmartConfiguration } from './smart-configuration.ts'

const FRESH_MS = 5 * 60_000
const STALE_MS = 24 * 3_600_000

/** Finds the auth server of a FHIR base. Ask only for a base that is configured: a request is made to it. */
export interface Discovery {
  find(fhirBaseUrl: string): Promise<Result<ServerMetadata>>
}

/** Reads `{iss}/.well-known/smart-configuration`, and keeps what it found: fresh for 5 minutes, and longer while it is away. */
export function createDiscovery(options: {
  readonly fetch: typeof fetch
  readonly clock: () => number
  readonly timeoutMs: number
}): Discovery {
  const cache = createCachedFetch<Found>({
    clock: options.clock,
    async fetch(fhirBaseUrl, previous) {
      const result = await readConfiguration(fhirBaseUrl, options)
      const now = options.clock()
      if (result.ok) return { value: { result, at: now }, freshForMs: FRESH_MS }
      const isUsable = previous?.value.result.ok && now - previous.value.at < STALE_MS
      return { value: isUsable ? previous.value : { result, at: now }, freshForMs: 0 }
    },
  })
  return { find: async fhirBaseUrl => (await cache.get(fhirBaseUrl)).result }
}

/** The last configuration that could be read, or why there is none. */
interface Found {
  readonly result: Result<ServerMetadata>
  readonly at: number
}

async function readConfiguration(
  fhirBaseUrl: string,
  { fetch, timeoutMs }: { readonly fetch: typeof globalThis.fetch; readonly timeoutMs: number },
): Promise<Result<ServerMetadata>> {
  const answer = await fetchJson(fetch, `${fhirBaseUrl}/.well-known/smart-configuration`, {
    timeoutMs,
    headers: { accept: 'application/json' },
  })
  if (answer.kind !== 'answered') return fail({ kind: answer.kind, server: 'FHIR server' })
  if (answer.status >= 500) return fail({ kind: 'away', server: 'FHIR server' })
  const document = plainOf(answer.json)
  const metadata = answer.status === 200 ? readSmartConfiguration(fhirBaseUrl, document) : undefined
  if (metadata) return succeed(metadata)
  return fail({
    kind: 'unexpected-answer',
    server: 'FHIR server',
    problem: 'no usable smart-configuration',
    check:
      answer.status === 200
        ? `smart-configuration ${describeConfigurationFault(fhirBaseUrl, document)}`
        : `smart-configuration answered ${answer.status}`,
  })
}
