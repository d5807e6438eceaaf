import { fail, isRecord } from '../../../fhir/index.ts'
import { type Failure, isFailure } from '../../../fhir-api/index.ts'
import { UPSTREAM_CHARACTERS, UPSTREAM_REQUESTS, UPSTREAM_REQUESTS_PER_ENTRY } from '../limits.ts'
import type { Upstream } from './client.ts'
import type { Caller } from './slots.ts'

/** The largest number of requests to the upstream for one request. A single search has its own limit, but a Bundle has thousands. */
export function computeAllowance(body: unknown): number {
  const entries = isRecord(body) && Array.isArray(body.entry) ? body.entry.length : 0
  return UPSTREAM_REQUESTS + UPSTREAM_REQUESTS_PER_ENTRY * entries
}

/** Sends all requests on behalf of a caller. */
export function bindCaller(upstream: Upstream, caller: Caller): Upstream {
  return {
    ...upstream,
    ask: request => upstream.ask(request, caller),
    pass: request => upstream.pass(request, caller),
  }
}

/** Limits the number of requests and the size of the responses, and stops when the caller has disconnected. */
export function limitRequests(upstream: Upstream, most: number, caller: Caller): Upstream {
  let sent = 0
  let characters = 0
  const findRefusal = () => {
    sent += 1
    if (caller.connection.destroyed) return DISCONNECTED
    if (characters > UPSTREAM_CHARACTERS) return TOO_MUCH
    return sent > most ? TOO_MANY : undefined
  }
  return {
    ...upstream,
    async ask(request) {
      const answer = findRefusal() ?? (await upstream.ask(request, caller))
      if (!isFailure(answer)) characters += answer.text.length
      return answer
    },
    pass: async request => findRefusal() ?? upstream.pass(request, caller),
  }
}

const DISCONNECTED: Failure = fail({
  problem: 'too-costly',
  text: 'Cannot continue: the caller has closed the connection',
})

const TOO_MUCH = fail({
  problem: 'too-costly',
  text: `Cannot read more than ${UPSTREAM_CHARACTERS} characters from the upstream FHIR server for one request: request less data`,
})

const TOO_MANY: Failure = fail({
  problem: 'too-costly',
  text: 'Cannot send more requests to the upstream FHIR server for one request: request less data',
})
