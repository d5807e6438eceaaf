import { isFailure } from '../../../core/index.ts'
import { failFor, type Work } from '../../../fhir/index.ts'
import { SKIMMED_BYTES, UPSTREAM_CHARACTERS } from '../limits.ts'
import { DISCONNECTED, type Upstream } from './client.ts'
import type { UpstreamCaller } from './slots.ts'

/** Sends all requests on behalf of a caller, and none after the caller has disconnected. */
export function bindCaller(upstream: Upstream, caller: UpstreamCaller): Upstream {
  const { connection } = caller
  return {
    ...upstream,
    ask: async request => (connection.destroyed ? DISCONNECTED : upstream.ask(request, caller)),
    pass: async request => (connection.destroyed ? DISCONNECTED : upstream.pass(request, caller)),
    skim: async (request, skimming) =>
      connection.destroyed ? DISCONNECTED : upstream.skim(request, skimming, caller),
  }
}

/** Counts every request and the size of its response as work, and limits the size of all responses. */
export function countRequests(upstream: Upstream, work: Work): Upstream {
  let characters = 0
  let skimmed = 0
  const findRefusal = () => {
    if (characters > UPSTREAM_CHARACTERS || skimmed > SKIMMED_BYTES) return TOO_MUCH
    return work.count('request')
  }
  /** An answer is never withheld: it may be that to a change. The next request is refused. */
  const countText = (text: string) => {
    characters += text.length
    work.count('character', text.length)
  }
  return {
    ...upstream,
    async ask(request) {
      const answer = findRefusal() ?? (await upstream.ask(request))
      if (!isFailure(answer)) countText(answer.text)
      return answer
    },
    pass: async request => findRefusal() ?? upstream.pass(request),
    async skim(request, skimming) {
      const answer = findRefusal() ?? (await upstream.skim(request, skimming))
      if (isFailure(answer)) return answer
      skimmed += answer.bytes
      countText(answer.text)
      return answer
    },
  }
}

const TOO_MUCH = failFor('upstream-characters-too-many', { most: UPSTREAM_CHARACTERS })
