import { after, describe } from 'node:test'
import { testBackend } from '../../fhir-api/testing/backend-conformance.ts'
import { startGateway, startUpstream } from './testing/start-gateway.ts'

// The embedded server without access control, in a second process.
const upstream = await startUpstream()

describe('the gateway in front of a second process (GATEWAY-1)', () => {
  after(() => upstream.end())
  testBackend({
    start: async options => startGateway(await upstream.open(), { ...options, narrowing: 'compartment' }),
  })
})
