import { isRecord } from '../../fhir/index.ts'
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

/** The upstream, so often and no more. */
export function withAllowance(upstream: Upstream, most: number): Upstream {
  let asked = 0
  const mayAsk = () => {
    asked += 1
    return asked <= most
  }
  return {
    ...upstream,
    ask: request => (mayAsk() ? upstream.ask(request) : Promise.resolve(TOO_OFTEN)),
    pass: request => (mayAsk() ? upstream.pass(request) : Promise.resolve(TOO_OFTEN)),
  }
}

const TOO_OFTEN: Problem = {
  problem: 'too-costly',
  text: 'Cannot do all of this in one request: ask for less at once',
}
