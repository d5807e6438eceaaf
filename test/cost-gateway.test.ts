/** The cost of one request to the gateway: see test/cost.test.ts. Most of the work on a FHIR request is the same in it. */
import { describe, it } from 'node:test'
import * as fhir from './cost/fhir.ts'
import { drawCases } from './cost/grammar.ts'
import { addCases, LIMITED_GROUP, LIMITED_ON_LARGE, load, loadLarge, ofModule } from './cost/measure.ts'
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
  describe('the cost of one request to the gateway with a large record', { concurrency: 1 }, () =>
    addCases(() => loadLarge(startMeasuredGateway()), [LIMITED_ON_LARGE, { answered: drawCases() }], add),
  )
  describe('the cost of one request to the gateway with raised limits', { concurrency: 1 }, () =>
    addCases(startRaisedGateway, [{ accepted: RAISED, refused: REFUSED_RAISED }], add),
  )
}
