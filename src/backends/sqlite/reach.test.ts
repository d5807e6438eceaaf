import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { reachSuite } from '../../fhir-api/testing/access-suite.ts'
import { binarySuite } from '../../fhir-api/testing/binary-suite.ts'
import { reachSearchSuite } from '../../fhir-api/testing/search-suite.ts'
import { startTwoPatients, type TwoPatients } from '../../fhir-api/testing/two-patients.ts'
import { idsOf, nextOf, startFhir } from './testing/fhir.ts'

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

describe("an id that was named while it was nobody's", () => {
  it('conveys nothing that is stored under it later', async () => {
    // The order of the writes decides, not the clock.
    const now = Date.parse('2026-01-01T00:00:00Z')
    const { fhir, ann, all } = await startTwoPatients(options => startFhir({ ...options, clock: () => now }))
    const binary = { resourceType: 'Binary', id: 'scan-7', contentType: 'text/plain', data: 'eA==' }
    const mine = { ...binary, securityContext: { reference: 'Patient/ann' } }
    const document = {
      ...{
        resourceType: 'DocumentReference',
        id: 'd',
        status: 'current',
        subject: { reference: 'Patient/ann' },
      },
      content: [{ attachment: { url: 'Binary/scan-7' } }],
    }
    const status = async () => (await ann('GET Binary/scan-7?_format=json')).status
    assert.equal((await ann('PUT Binary/scan-7', mine)).status, 201)
    assert.equal((await ann('PUT DocumentReference/d', document)).status, 201)
    assert.equal((await ann('DELETE Binary/scan-7')).status, 204)
    assert.equal((await ann('PUT DocumentReference/d', document)).status, 403)
    assert.equal((await all('PUT Binary/scan-7', binary)).status, 201)
    assert.equal(await status(), 403)
    assert.equal((await ann('PUT DocumentReference/d', document)).status, 403)
    // Whoever may read every Binary says whose it is.
    assert.equal((await all('PUT DocumentReference/d', document)).status, 200)
    assert.equal(await status(), 200)
    // What takes its place may be of somebody else.
    assert.equal((await all('PUT Binary/scan-7', { ...binary, data: 'eQ==' })).status, 200)
    assert.equal(await status(), 403)
    await fhir.close()
  })
})
