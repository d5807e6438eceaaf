import type { Interaction } from '../../fhir/index.ts'
import type { Authenticated, Authenticator, AuthFailure } from '../../smart/index.ts'
import type { Counter, Registry } from '../../web/index.ts'
import type { CacheCounts } from '../access/access-cache.ts'

export function createDecisionCounter(registry: Registry): Counter {
  return registry.counter({
    name: 'sallyport_decisions_total',
    help: 'Decisions about FHIR requests and entries of Bundles, by outcome and reason. A request that its scopes allow may still be refused for its content, as outside-access.',
    labels: ['outcome', 'reason'],
  })
}

export interface CountingAuthenticator extends Authenticator {
  /** How often the caller of a valid token was cached. */
  count(): CacheCounts
}

/** Counts every decision: about tokens, and about each interaction of a request. */
export function countDecisions(guard: Authenticator, decisions: Counter): CountingAuthenticator {
  const counts = { hits: 0, misses: 0 }
  const counted = new WeakMap<Authenticated, Authenticated>()

  function countCaller(caller: Authenticated): Authenticated {
    const known = counted.get(caller)
    if (known) return known
    const made: Authenticated = { ...caller, decide: interaction => countDecision(caller, interaction) }
    counted.set(caller, made)
    return made
  }

  function countDecision(caller: Authenticated, interaction: Interaction) {
    const decision = caller.decide(interaction)
    if (decision.allowed) decisions.add(ALLOWED)
    else decisions.add(['refused', decision.reason ?? 'other'])
    return decision
  }

  function countResult(result: AuthFailure | Authenticated): AuthFailure | Authenticated {
    if (result.allowed) return countCaller(result)
    decisions.add(['refused', result.reason ?? 'other'])
    return result
  }

  return {
    count: () => counts,
    authenticate(authorization) {
      const result = guard.authenticate(authorization)
      if (result instanceof Promise) {
        counts.misses += 1
        return result.then(countResult)
      }
      if (result.allowed) counts.hits += 1
      return countResult(result)
    },
  }
}

const ALLOWED = ['allowed', 'scope']

export function countLookups(registry: Registry, caches: Readonly<Record<string, () => CacheCounts>>): void {
  registry.readCounter(
    {
      name: 'sallyport_cache_lookups_total',
      help: 'Lookups in caches by result: hit or miss.',
      labels: ['cache', 'result'],
    },
    () =>
      Object.entries(caches).flatMap(([name, count]) => [
        [count().hits, name, 'hit'] as const,
        [count().misses, name, 'miss'] as const,
      ]),
  )
}
