import { fail, isProblem, isRecord } from '../../../fhir/index.ts'
import { UPSTREAM_CHARACTERS, UPSTREAM_REQUESTS, UPSTREAM_REQUESTS_PER_ENTRY } from '../limits.ts'
import type { Problem } from '../problem.ts'
import type { Upstream } from './client.ts'
import type { Caller } from './slots.ts'

/**
 * How often the upstream is asked for one request at most. What a single search looks through has an end of its own, but
 * a Bundle holds thousands of them, and each chain is one more.
 */
export function computeAllowance(body: unknown): number {
  const entries = isRecord(body) && Array.isArray(body.entry) ? body.entry.length : 0
  return UPSTREAM_REQUESTS + UPSTREAM_REQUESTS_PER_ENTRY * entries
}

/** The upstream as it is asked on behalf of a caller. */
export function onBehalfOf(upstream: Upstream, caller: Caller): Upstream {
  return {
    ...upstream,
    ask: request => upstream.ask(request, caller),
    pass: request => upstream.pass(request, caller),
  }
}

/** The same, so often and for so much and no more, and only as long as somebody waits for it. */
export function withAllowance(upstream: Upstream, most: number, caller: Caller): Upstream {
  let asked = 0
  let characters = 0
  const refusal = () => {
    asked += 1
    if (caller.connection.destroyed) return NOBODY_WAITS
    if (characters > UPSTREAM_CHARACTERS) return TOO_MUCH
    return asked > most ? TOO_OFTEN : undefined
  }
  return {
    ...upstream,
    async ask(request) {
      const answer = refusal() ?? (await upstream.ask(request, caller))
      if (!isProblem(answer)) characters += answer.text.length
      return answer
    },
    pass: async request => refusal() ?? upstream.pass(request, caller),
  }
}

const NOBODY_WAITS: Problem = fail({
  problem: 'too-costly',
  text: 'Cannot continue: the caller has closed the connection',
})

const TOO_MUCH = fail({
  problem: 'too-costly',
  text: `Cannot read more than ${UPSTREAM_CHARACTERS} characters from the upstream FHIR server for one request: request less data`,
})

const TOO_OFTEN: Problem = fail({
  problem: 'too-costly',
  text: 'Cannot do all of this in one request: ask for less at once',
})
