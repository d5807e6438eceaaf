import { after, describe } from 'node:test'
import { IS_THOROUGH } from '../../../../test/support/thorough.ts'
import { testHidden } from '../../../fhir-api/testing/hidden-suite.ts'
import { startGateway, startUpstream } from '../testing/start-gateway.ts'

const upstream = await startUpstream()
after(() => upstream.end())

const NARROWINGS = IS_THOROUGH ? (['compartment', 'parameter'] as const) : (['parameter'] as const)

for (const narrowing of NARROWINGS)
  describe(`resources of the upstream outside the access, narrowed by ${narrowing}`, () => {
    testHidden(async options => startGateway(await upstream.open(), { ...options, narrowing }))
  })
