import { describe } from 'node:test'
import { binarySuite } from '../sqlite/testing/binary-suite.ts'
import { reachSearchSuite } from '../sqlite/testing/reach-search-suite.ts'
import { reachSuite } from '../sqlite/testing/reach-suite.ts'
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
