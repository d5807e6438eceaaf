/**
 * No single request keeps the event loop busy for more than 100 ms, or takes more than 2 s of CPU time or 64 MB beyond its own
 * body (docs/limits.md). Each case grows one dimension of a request to its limit, or far beyond it; those of `grammar.ts` are
 * drawn from the grammar. The servers run in a process of their own with default settings. Time is CPU time in units of a fixed
 * piece of work that the same process does (test/support/cost-probe.ts), so that a slow or busy machine changes nothing.
 *
 * `TEST_THOROUGH=1 COST_REPORT=1 npm test -- --verbose test/cost.test.ts` prints the cost of each case, and
 * `test/cost-gateway.test.ts` has the cases of the gateway.
 */
import { describe, it } from 'node:test'
import * as app from './cost/app.ts'
import * as auth from './cost/auth.ts'
import * as fhir from './cost/fhir.ts'
import { drawCases } from './cost/grammar.ts'
import { addCases, LIMITED_GROUP, LIMITED_ON_LARGE, load, loadLarge, ofModule } from './cost/measure.ts'
import { listRouteCases } from './cost/routes.ts'
import { startMeasuredServers } from './support/measured-servers.ts'
import { IS_THOROUGH } from './support/thorough.ts'

const GROUPS = [
  LIMITED_GROUP,
  ...[fhir, auth, app].map(ofModule),
  // In a quick run, the cases that were written for a route stand for it.
  ...(IS_THOROUGH ? [{ answered: await listRouteCases() }] : []),
]

const add = (dimension: string, run: () => Promise<void>) =>
  it(`is limited: ${dimension} (LIMIT-1, LIMIT-2)`, run)

describe('the cost of one request to the servers with the embedded FHIR server', { concurrency: 1 }, () =>
  addCases(() => load(startMeasuredServers()), GROUPS, add),
)

describe('the cost of one request to the embedded FHIR server with a large record', { concurrency: 1 }, () =>
  addCases(() => loadLarge(startMeasuredServers()), [LIMITED_ON_LARGE, { answered: drawCases() }], add),
)
