import { after, describe } from 'node:test'
import { testBackend } from '../../fhir-api/testing/backend-conformance.ts'
import { startGateway, startUpstream } from './testing/start-gateway.ts'

// The embedded server without access control, in a second process.
describe('the gateway in front of a second process', async () => {
  const upstream = await startUpstream()
  after(() => upstream.end())
  testBackend({
    start: async options => startGateway(await upstream.open(), { ...options, narrowing: 'compartment' }),
  })
})
