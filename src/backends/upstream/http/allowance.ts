import { fail, isFailure, isRecord } from '../../../core/index.ts'
import type { Failure } from '../../../fhir-api/index.ts'
import {
  SKIMMED_BYTES,
  UPSTREAM_CHARACTERS,
  UPSTREAM_REQUESTS,
  UPSTREAM_REQUESTS_PER_ENTRY,
} from '../limits.ts'
import { DISCONNECTED, type Upstream } from './client.ts'
import type { Caller } from './slots.ts'

/** The largest number of requests to the upstream for one request. A single search has its own limit, but a Bundle has thousands. */
export function computeAllowance(body: unknown): number {
  const entries = isRecord(body) && Array.isArray(body.entry) ? body.entry.length : 0
  return UPSTREAM_REQUESTS + UPSTREAM_REQUESTS_PER_ENTRY * entries
}

/** Sends all requests on behalf of a caller, and none after the caller has disconnected. */
export function bindCaller(upstream: Upstream, caller: Caller): Upstream {
  const { connection } = caller
  return {
    ...upstream,
    ask: async request => (connection.destroyed ? DISCONNECTED : upstream.ask(request, caller)),
    pass: async request => (connection.destroyed ? DISCONNECTED : upstream.pass(request, caller)),
    skim: async (request, longest) =>
      connection.destroyed ? DISCONNECTED : upstream.skim(request, longest, caller),
  }
}

/** Limits the number of requests and the size of the responses. */
export function limitRequests(upstream: Upstream, maxRequests: number): Upstream {
  let sent = 0
  let characters = 0
  let skimmed = 0
  const findRefusal = () => {
    sent += 1
    if (characters > UPSTREAM_CHARACTERS || skimmed > SKIMMED_BYTES) return TOO_MUCH
    return sent > maxRequests ? TOO_MANY : undefined
  }
  return {
    ...upstream,
    async ask(request) {
      const answer = findRefusal() ?? (await upstream.ask(request))
      if (!isFailure(answer)) characters += answer.text.length
      return answer
    },
    pass: async request => findRefusal() ?? upstream.pass(request),
    async skim(request, longest) {
      const answer = findRefusal() ?? (await upstream.skim(request, longest))
      if (isFailure(answer)) return answer
      characters += answer.text.length
      skimmed += answer.bytes
      return answer
    },
  }
}

const TOO_MUCH = fail({
  problem: 'too-costly',
  text: `Cannot read more than ${UPSTREAM_CHARACTERS} characters from the upstream FHIR server for one request: request less data`,
})

const TOO_MANY: Failure = fail({
  problem: 'too-costly',
  text: 'Cannot send more requests to the upstream FHIR server for one request: request less data',
})
