import { after, describe } from 'node:test'
import { testHidden } from '../../fhir-api/testing/hidden-suite.ts'
import { startGateway, startUpstream } from './testing/start-gateway.ts'

const upstream = await startUpstream()
after(() => upstream.end())

describe('resources of the upstream outside the access', () => {
  testHidden(async options => startGateway(await upstream.open(), { ...options, narrowing: 'compartment' }), {
    // A link has the upstream's own link, whose length depends on its page.
    lengths: false,
    // A sorted page of a panel may be followed by an empty one.
    isCompared: (request, caller) => !(caller === 'a panel' && request.includes('_sort')),
  })
})
