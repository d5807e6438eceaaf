import { createCachedFetch } from '../../../cache/index.ts'
import { fail, findJsonExcess, isRecord } from '../../../fhir/index.ts'
import { type Failure, isFailure } from '../../../fhir-api/index.ts'
import { CAPABILITIES_EVERY_MS } from '../limits.ts'
import type { Upstream } from './client.ts'

export type CapabilityStatement = Readonly<Record<string, unknown>>

/** The upstream's CapabilityStatement. A failed read keeps the previous one. */
export interface UpstreamCapabilities {
  get(): Promise<CapabilityStatement | Failure>
  /** Reads it now and then at intervals, so that no request waits for it. */
  start(): void
  close(): void
}

const HEADERS = { accept: 'application/fhir+json', 'accept-encoding': 'gzip, br' }
/** Longer than the interval: the timer reads it again before a request has to. */
const FRESH_MS = 2 * CAPABILITIES_EVERY_MS

export function createCapabilities(upstream: Upstream, clock: () => number): UpstreamCapabilities {
  let timer: NodeJS.Timeout | undefined
  const cache = createCachedFetch<CapabilityStatement | Failure>({
    clock,
    async fetch(path, previous) {
      const answer = await upstream.ask({ method: 'GET', path, headers: HEADERS })
      const statement = isFailure(answer) ? answer : parseStatement(answer.status, answer.text)
      if (!isFailure(statement)) return { value: statement, freshForMs: FRESH_MS }
      return previous && !isFailure(previous.value)
        ? { value: previous.value, freshForMs: FRESH_MS }
        : { value: statement, freshForMs: 0 }
    },
  })
  const refresh = () => void cache.refresh('/metadata')
  return {
    get: async () => cache.get('/metadata'),
    start() {
      clearInterval(timer)
      timer = setInterval(refresh, CAPABILITIES_EVERY_MS).unref()
      refresh()
    },
    close: () => clearInterval(timer),
  }
}

function parseStatement(status: number, text: string): CapabilityStatement | Failure {
  const why = 'its metadata is no CapabilityStatement'
  if (status !== 200) return fail({ problem: 'upstream-broken', why })
  try {
    const statement: unknown = findJsonExcess(text) ? undefined : JSON.parse(text)
    if (isRecord(statement) && statement.resourceType === 'CapabilityStatement') return statement
  } catch {
    // No JSON is no CapabilityStatement either.
  }
  return fail({ problem: 'upstream-broken', why })
}
