import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { testBackend } from '../../fhir-api/testing/backend-conformance.ts'
import { testHidden } from '../../fhir-api/testing/hidden-suite.ts'
import { startTwoPatients, type TwoPatients } from '../../fhir-api/testing/two-patients.ts'
import { readIds, readNextLink, startFhir } from './testing/fhir.ts'

testBackend({ start: startFhir })

describe('resources outside the access', () => testHidden(startFhir))

describe('writes at the same time', () => {
  it('are all stored, each as its own version', async () => {
    const fhir = await startFhir()
    const put = () => fhir('PUT Patient/ann', { resourceType: 'Patient', id: 'ann' })
    const replies = await Promise.all(Array.from({ length: 30 }, put))
    assert.deepEqual(new Set(replies.map(it => it.status)), new Set([201, 200]))
    assert.equal(new Set(replies.map(it => it.headers.etag)).size, 30)
    await fhir.close()
  })
})

describe('a version', () => {
  it('has the time of the clock, an id that sorts by time, and a length for HEAD', async () => {
    const fhir = await startFhir({ clock: () => Date.parse('2026-03-01T10:00:00.250Z') })
    const made = await fhir('POST Patient', { resourceType: 'Patient' })
    assert.match(made.body.id ?? '', /^[0-9a-f]{8}-[0-9a-f]{4}-7/)
    assert.deepEqual(made.body.meta, { versionId: '1', lastUpdated: '2026-03-01T10:00:00.250Z' })
    assert.equal(made.headers['last-modified'], 'Sun, 01 Mar 2026 10:00:00 GMT')
    const head = await fhir(`HEAD Patient/${made.body.id}`)
    assert.equal(head.headers['content-length'], String(Buffer.byteLength(made.text)))
    await fhir.close()
  })
})

describe('a paging link', () => {
  let servers: TwoPatients
  before(async () => {
    servers = await startTwoPatients(startFhir)
  })
  after(() => servers.fhir.close())

  it('is evaluated with the access of the caller who follows it', async () => {
    const { fhir, ann, all } = servers
    const next = readNextLink(await all('GET Condition?_count=1')) ?? ''
    const own = await ann(`GET ${next}`)
    assert.equal(own.status, 200)
    assert.deepEqual(
      readIds(own).filter(id => id !== 'ca'),
      [],
    )
    assert.deepEqual(readIds(await fhir.as('vitals')(`GET ${next}`)), [])
  })
})

describe('the id of a deleted Binary that a document still names', () => {
  it('grants no access to content that is stored under it later', async () => {
    // The order of the writes decides, not the clock.
    const now = Date.parse('2026-01-01T00:00:00Z')
    const { fhir, ann, all } = await startTwoPatients(options => startFhir({ ...options, clock: () => now }))
    const binary = { resourceType: 'Binary', id: 'scan-7', contentType: 'text/plain', data: 'eA==' }
    const mine = { ...binary, securityContext: { reference: 'Patient/ann' } }
    const document = {
      resourceType: 'DocumentReference',
      id: 'd',
      status: 'current',
      subject: { reference: 'Patient/ann' },
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
    // A caller who may read every Binary may assign it to a patient.
    assert.equal((await all('PUT DocumentReference/d', document)).status, 200)
    assert.equal(await status(), 200)
    // The new content may belong to another patient.
    assert.equal((await all('PUT Binary/scan-7', { ...binary, data: 'eQ==' })).status, 200)
    assert.equal(await status(), 403)
    await fhir.close()
  })
})
