import type { ServerMetadata } from 'openid-client'
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

interface Found {
  readonly metadata: ServerMetadata
  readonly at: number
}

/** Reads `{iss}/.well-known/smart-configuration`, and keeps what it found: fresh for 5 minutes, and longer while it is away. */
export function createDiscovery(options: {
  readonly fetch: typeof fetch
  readonly clock: () => number
  readonly timeoutMs: number
}): Discovery {
  const found = new Map<string, Found>()
  const asking = new Map<string, Promise<Result<ServerMetadata>>>()

  async function ask(fhirBaseUrl: string): Promise<Result<ServerMetadata>> {
    const answer = await readConfiguration(fhirBaseUrl, options)
    if (answer.ok) found.set(fhirBaseUrl, { metadata: answer.value, at: options.clock() })
    const kept = found.get(fhirBaseUrl)
    return kept && options.clock() - kept.at < STALE_MS ? succeed(kept.metadata) : answer
  }

  return {
    find: async fhirBaseUrl => {
      const kept = found.get(fhirBaseUrl)
      if (kept && options.clock() - kept.at < FRESH_MS) return succeed(kept.metadata)
      const running = asking.get(fhirBaseUrl) ?? ask(fhirBaseUrl).finally(() => asking.delete(fhirBaseUrl))
      asking.set(fhirBaseUrl, running)
      return running
    },
  }
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
