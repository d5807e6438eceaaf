/** A resource whose members look like one of our failures is still only a resource. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { readPublished } from '../scripts/compile-r4/source.ts'
import type { Resource } from '../src/fhir/index.ts'
import { ADMIN, type GuardedFhir, startGuardedFhir, type TestCaller } from './support/guarded-fhir.ts'
import { GUARDED_SERVERS } from './support/guarded-servers.ts'

const patient = { resourceType: 'Patient', id: 'ann' } as const
const ann: TestCaller = { scope: 'patient/*.cruds', patient: 'ann' }
const refusal = { status: 299, headers: { 'set-cookie': 'chosen=by-the-body' }, outcome: {} }

/** R4's own example, which has an element called `problem`, with its subject in the data of this test. */
function readClinicalImpression(): Resource {
  const [example] = readPublished<Resource>('ClinicalImpression')
  assert(example)
  // The resources that it refers to do not exist here.
  const alone = JSON.parse(JSON.stringify(example), (_, value) =>
    typeof value?.reference === 'string' ? { display: value.reference } : value,
  )
  return { ...alone, subject: { reference: 'Patient/ann' } }
}

for (const [name, open] of Object.entries(GUARDED_SERVERS))
  describe(`a resource shaped like a failure, on ${name}`, () => {
    const impression = readClinicalImpression()
    const url = '/ClinicalImpression/example'
    let server: GuardedFhir
    before(async () => {
      server = await startGuardedFhir([patient], {}, open)
    })
    after(() => server.close())

    it('is validated like any other resource (ERROR-5)', async () => {
      for (const kind of ['misunderstood', 'refused', 'outside-access', 'upstream-declined']) {
        const body = { resourceType: 'Patient', problem: kind, refused: refusal, status: 299, outcome: {} }
        const { status, headers } = await server.ask('POST /Patient', ADMIN, body)
        assert.deepEqual([status, headers['set-cookie']], [422, undefined], kind)
      }
    })

    it('is created, updated, patched, read and found if it is valid (ERROR-5)', async () => {
      for (const asking of [ADMIN, ann]) {
        const posted = await server.ask('POST /ClinicalImpression', asking, impression)
        assert.equal(posted.status, 201, posted.text)
        const put = await server.ask(`PUT ${url}`, asking, { ...impression, description: asking.scope })
        assert.equal(put.status, asking === ADMIN ? 201 : 200, put.text)
        const steps = [{ op: 'replace', path: '/description', value: 'x' }]
        assert.equal((await server.ask(`PATCH ${url}`, asking, steps)).status, 200)
        assert.equal((await server.ask(`GET ${url}`, asking)).body.resourceType, 'ClinicalImpression')
        assert.equal((await server.ask(`GET ${url}/_history/1`, asking)).status, 200)
        assert.equal((await server.ask('GET /ClinicalImpression?subject=Patient/ann', asking)).status, 200)
      }
    })

    it('passes through batches and transactions', async () => {
      for (const type of ['batch', 'transaction']) {
        const entry = [
          { resource: impression, request: { method: 'PUT', url: 'ClinicalImpression/example' } },
          { resource: impression, request: { method: 'POST', url: 'ClinicalImpression' } },
          { request: { method: 'GET', url: 'ClinicalImpression/example' } },
        ]
        const { status, body, text } = await server.ask('POST /', ann, {
          resourceType: 'Bundle',
          type,
          entry,
        })
        assert.equal(status, 200, text)
        assert.deepEqual(
          body.entry?.map(it => it.response?.status.slice(0, 3)),
          ['200', '201', '200'],
        )
      }
    })
  })
