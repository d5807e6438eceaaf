import { randomUUID } from 'node:crypto'
import { createCachedFetch } from '../../../cache/index.ts'
import { isFailure } from '../../../core/index.ts'
import type { Upstream } from '../http/client.ts'
import { parseBundle } from '../http/response.ts'
import { CAPABILITIES_EVERY_MS } from '../limits.ts'

const HEADERS = { accept: 'application/fhir+json', prefer: 'handling=strict' }
/** How long the gateway does without chains after a failed request. */
const FAILED_MS = 10_000

/**
 * Finds out whether the upstream follows chains and `_has`, by searches that then find nothing: a CapabilityStatement does
 * not say it, and a server that ignores a chain finds everything.
 */
export function createChainSupport(upstream: Upstream, clock: () => number): () => Promise<boolean> {
  const cache = createCachedFetch<boolean>({
    clock,
    async fetch() {
      const found = await Promise.all(listProbes(randomUUID()).map(path => findsNothing(upstream, path)))
      const isKnown = found.every(it => it !== undefined)
      return {
        value: found.every(it => it === true),
        freshForMs: isKnown ? CAPABILITIES_EVERY_MS : FAILED_MS,
      }
    },
  })
  return async () => cache.get('')
}

/** The forms of `buildPanelParams`, with an id that no resource has. */
function listProbes(id: string): readonly string[] {
  return [
    `/CareTeam?patient:Patient.organization=Organization/${id}&_count=1`,
    `/CareTeam?patient:Patient._has:CareTeam:patient:participant=Practitioner/${id}&_count=1`,
    `/Patient?_has:CareTeam:patient:participant=Practitioner/${id}&_count=1`,
  ]
}

/** Undefined without a response. */
async function findsNothing(upstream: Upstream, path: string): Promise<boolean | undefined> {
  const response = await upstream.ask({ method: 'GET', path, headers: HEADERS })
  if (isFailure(response)) return undefined
  const bundle = response.status === 200 ? parseBundle(response) : undefined
  return bundle !== undefined && !isFailure(bundle) && bundle.entries?.length === 0
}
