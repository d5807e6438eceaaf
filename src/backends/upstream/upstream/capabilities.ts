import { createCachedFetch } from '../../../cache/index.ts'
import { fail, findJsonExcess, isProblem, isRecord } from '../../../fhir/index.ts'
import type { Problem } from '../problem.ts'
import type { Upstream } from './upstream.ts'

/** The upstream's CapabilityStatement, asked for again after a minute; an old one does while it is away. */
export interface UpstreamCapabilities {
  get(): Promise<Readonly<Record<string, unknown>> | Problem>
}

const FRESH_MS = 60_000

export function createCapabilities(upstream: Upstream, clock: () => number): UpstreamCapabilities {
  const cache = createCachedFetch<Readonly<Record<string, unknown>> | Problem>({
    clock,
    async fetch(path, previous) {
      const answer = await upstream.ask({ method: 'GET', path, headers: { accept: 'application/fhir+json' } })
      const statement = isProblem(answer) ? answer : statementOf(answer.status, answer.text)
      if (!isProblem(statement)) return { value: statement, freshForMs: FRESH_MS }
      const value = previous && !isProblem(previous.value) ? previous.value : statement
      return { value, freshForMs: 0 }
    },
  })
  return { get: async () => cache.get('/metadata') }
}

function statementOf(status: number, text: string): Readonly<Record<string, unknown>> | Problem {
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
