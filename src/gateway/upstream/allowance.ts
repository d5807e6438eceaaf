import { fail, isRecord } from '../../fhir/index.ts'
import type { Call } from '../call.ts'
import type { Problem } from '../problem.ts'
import type { Upstream } from './upstream.ts'

const ONE_REQUEST = 2000
const ONE_ENTRY = 20

/**
 * How often the upstream is asked for one request at most. What a single search looks through has an end of its own, but
 * a Bundle holds thousands of them, and each chain is one more.
 */
export function allowanceFor(body: unknown): number {
  const entries = isRecord(body) && Array.isArray(body.entry) ? body.entry.length : 0
  return ONE_REQUEST + ONE_ENTRY * entries
}

/** The upstream, so often and no more, and only as long as somebody waits for it. */
export function withAllowance(upstream: Upstream, most: number, connection: Call['connection']): Upstream {
  let asked = 0
  const refusal = () => {
    asked += 1
    if (connection.destroyed) return NOBODY_WAITS
    return asked > most ? TOO_OFTEN : undefined
  }
  return {
    ...upstream,
    ask: async request => refusal() ?? upstream.ask(request),
    pass: async request => refusal() ?? upstream.pass(request),
  }
}

const NOBODY_WAITS: Problem = fail({ problem: 'too-costly', text: 'Cannot go on: the caller has gone' })

const TOO_OFTEN: Problem = fail({
  problem: 'too-costly',
  text: 'Cannot do all of this in one request: ask for less at once',
})
