/**
 * No single request keeps the event loop busy for more than 100 ms, or takes more than 2 s of CPU time or 96 MB beyond its own
 * body (docs/limits.md). Each case grows one dimension of a request to its limit, or far beyond it; those of `grammar.ts` are
 * drawn from the grammar. The servers run in a
 * process of their own with default settings. Time is CPU time in units of a fixed piece of work that the same
 * process does (test/support/cost-probe.ts), so that a slow or busy machine changes nothing.
 *
 * `TEST_THOROUGH=1 COST_REPORT=1 npm test -- --verbose test/cost.test.ts` prints the cost of each case, and
 * `test/cost-gateway.test.ts` has the cases of the gateway.
 */
import { describe, it } from 'node:test'
import * as app from './cost/app.ts'
import * as auth from './cost/auth.ts'
import * as fhir from './cost/fhir.ts'
import { drawBundles, drawSearches } from './cost/grammar.ts'
import { addCases, LIMITED_GROUP, load, loadLarge, ofModule } from './cost/measure.ts'
import { listRouteCases } from './cost/routes.ts'
import { startMeasuredServers } from './support/measured-servers.ts'
import { IS_THOROUGH } from './support/thorough.ts'

/** Cases from the grammar, on a large record: `COST_SEED=7 TEST_THOROUGH=1`. */
const IS_DRAWN = IS_THOROUGH && process.env.COST_SEED !== undefined

const GROUPS = [
  LIMITED_GROUP,
  ...[fhir, auth, app].map(ofModule),
  // In a quick run, the cases that were written for a route stand for it.
  ...(IS_THOROUGH ? [{ answered: await listRouteCases() }] : []),
  ...(IS_DRAWN ? [{ answered: { ...drawSearches(), ...drawBundles() } }] : []),
]

describe('the cost of one request to the servers with the embedded FHIR server', { concurrency: 1 }, () =>
  addCases(
    () => (IS_DRAWN ? loadLarge : load)(startMeasuredServers()),
    GROUPS,
    (dimension, run) => it(`is limited: ${dimension} (LIMIT-1, LIMIT-2)`, run),
  ),
)
