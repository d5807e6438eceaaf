import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { binarySuite } from './testing/binary-suite.ts'
import { idsOf, nextOf, startFhir } from './testing/fhir.ts'
import { reachSearchSuite } from './testing/reach-search-suite.ts'
import { reachSuite } from './testing/reach-suite.ts'
import { startTwoPatients, type TwoPatients } from './testing/two-patients.ts'

reachSuite(startFhir)
reachSearchSuite(startFhir)
binarySuite(startFhir)

describe('a paging link', () => {
  let servers: TwoPatients
  before(async () => {
    servers = await startTwoPatients(startFhir)
  })
  after(() => servers.fhir.close())

  it('is searched with the access of who asks for it', async () => {
    const { fhir, ann, all } = servers
    const next = nextOf(await all('GET Condition?_count=1')) ?? ''
    const own = await ann(`GET ${next}`)
    assert.equal(own.status, 200)
    assert.deepEqual(
      idsOf(own).filter(id => id !== 'ca'),
      [],
    )
    assert.deepEqual(idsOf(await fhir.as('vitals')(`GET ${next}`)), [])
  })
})
