import { describe } from 'node:test'
import { testBackend } from '../../fhir-api/testing/backend-conformance.ts'
import { startHapi } from './testing/hapi/start-hapi.ts'
import { startRecordedGateway } from './testing/start-gateway.ts'

describe('the gateway in front of a server with the habits of HAPI', () => {
  testBackend({
    gaps: { 'names the entry whose content is invalid': 'the upstream names its place in its own words' },
    lacks: {
      'same-refusals': 'HAPI has its own texts, and 409 for another version',
      'whole-compartments': 'HAPI has no compartment searches',
    },
    start: async options => {
      const upstream = await startHapi()
      const fhir = await startRecordedGateway(upstream.url, options)
      fhir.app.addHook('onClose', () => upstream.close())
      return fhir
    },
  })
})
