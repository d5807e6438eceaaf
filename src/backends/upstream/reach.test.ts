import { describe } from 'node:test'
import { reachSuite } from '../../fhir-api/testing/access-suite.ts'
import { binarySuite } from '../../fhir-api/testing/binary-suite.ts'
import { reachSearchSuite } from '../../fhir-api/testing/search-suite.ts'
import { startGatewayWithUpstream } from './testing/start-gateway.ts'

// What holds on the embedded server holds through the gateway, with the embedded server unguarded behind it.
describe('through the gateway, narrowed by compartment paths', () => {
  reachSuite(options => startGatewayWithUpstream({ ...options, narrowing: 'compartment' }))
  reachSearchSuite(options => startGatewayWithUpstream({ ...options, narrowing: 'compartment' }))
  binarySuite(options => startGatewayWithUpstream({ ...options, narrowing: 'compartment' }))
})

describe('through the gateway, narrowed by parameters', () => {
  reachSearchSuite(options => startGatewayWithUpstream({ ...options, narrowing: 'parameter' }))
  binarySuite(options => startGatewayWithUpstream({ ...options, narrowing: 'parameter' }))
})
