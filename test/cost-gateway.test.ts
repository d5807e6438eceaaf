/** The cost of one request to the gateway: see test/cost.test.ts. Most of the work on a FHIR request is the same in it. */
import { describe, it } from 'node:test'
import * as fhir from './cost/fhir.ts'
import { drawBundles, drawSearches } from './cost/grammar.ts'
import { addCases, LIMITED_GROUP, load, loadLarge, ofModule } from './cost/measure.ts'
import { RAISED, REFUSED_RAISED, startRaisedGateway } from './cost/raised.ts'
import { startMeasuredGateway } from './support/measured-servers.ts'
import { IS_THOROUGH } from './support/thorough.ts'

const add = (dimension: string, run: () => Promise<void>) => it(`is limited: ${dimension}`, run)

if (IS_THOROUGH) {
  describe('the cost of one request to the gateway', { concurrency: 1 }, () =>
    addCases(
      () => load(startMeasuredGateway()),
      [LIMITED_GROUP, ofModule({ ...fhir, REFUSED: fhir.REFUSED_BY_GATEWAY })],
      add,
    ),
  )
  if (process.env.COST_SEED !== undefined)
    describe('the cost of one drawn request to the gateway', { concurrency: 1 }, () =>
      addCases(
        () => loadLarge(startMeasuredGateway()),
        [{ answered: { ...drawSearches(), ...drawBundles() } }],
        add,
      ),
    )
  describe('the cost of one request to the gateway with raised limits', { concurrency: 1 }, () =>
    addCases(startRaisedGateway, [{ accepted: RAISED, refused: REFUSED_RAISED }], add),
  )
}
