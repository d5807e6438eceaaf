import { describe } from 'node:test'
import { testBackend } from '../../fhir-api/testing/backend-conformance.ts'
import { HAPI_LACKS } from './testing/hapi/lacks.ts'
import { startHapi } from './testing/hapi/start-hapi.ts'
import { startRecordedGateway } from './testing/start-gateway.ts'

describe('the gateway in front of a server with the behaviour of HAPI (GATEWAY-1)', () => {
  testBackend({
    lacks: HAPI_LACKS,
    start: async options => {
      const upstream = await startHapi()
      const fhir = await startRecordedGateway(upstream.url, { profile: 'auto', ...options })
      fhir.app.addHook('onClose', () => upstream.close())
      return fhir
    },
  })
})
