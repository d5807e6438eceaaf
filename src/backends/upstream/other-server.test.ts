import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { fullAccess } from '../../smart/index.ts'
import { type Fhir, guardOf, idsOf, issueOf, patientAccess } from '../sqlite/testing/fhir.ts'
import { startMedplum } from './testing/medplum-upstream.ts'
import { startGateway } from './testing/start-gateway.ts'

const NOT_WITHIN = '403 forbidden: Not within the granted patient, user or filter.'

describe('in front of a FHIR server that nobody here wrote', () => {
  let upstream: Awaited<ReturnType<typeof startMedplum>>
  let fhir: Fhir
  let all: Fhir
  const ids: Record<string, string> = {}
  let accesses: Record<string, ReturnType<typeof patientAccess>> = {}

  before(async () => {
    upstream = await startMedplum()
    const guard = {
      authenticate: (authorization: string | undefined) => guardOf(accesses).authenticate(authorization),
    }
    accesses = { all: fullAccess }
    fhir = await startGateway(upstream.url, { guard })
    all = fhir.as('all')
    const create = async (name: string, resource: { resourceType: string }) => {
      const made = await all(`POST ${resource.resourceType}`, resource)
      assert.equal(made.status, 201, made.text)
      ids[name] = made.body.id ?? ''
    }
    const subject = (name: string) => ({ reference: `Patient/${ids[name]}` })
    await create('ann', { resourceType: 'Patient', name: [{ family: 'Ann' }] } as never)
    await create('bob', { resourceType: 'Patient', name: [{ family: 'Bob' }] } as never)
    await create('ca', {
      resourceType: 'Condition',
      subject: subject('ann'),
      recordedDate: '2020-01-01',
    } as never)
    await create('ca2', {
      resourceType: 'Condition',
      subject: subject('ann'),
      recordedDate: '2021-01-01',
    } as never)
    await create('cb', {
      resourceType: 'Condition',
      subject: subject('bob'),
      recordedDate: '2022-01-01',
    } as never)
    accesses = { all: fullAccess, ann: patientAccess(ids.ann ?? '') }
  })
  after(async () => {
    await fhir.close()
    await upstream.close()
  })

  it('reads, and refuses, by what comes back', async () => {
    const ann = fhir.as('ann')
    assert.equal((await ann(`GET Condition/${ids.ca}`)).status, 200)
    for (const id of [ids.cb, crypto.randomUUID()])
      assert.equal(issueOf(await ann(`GET Condition/${id}`)), NOT_WITHIN)
    assert.equal(issueOf(await ann(`GET Patient/${ids.bob}`)), NOT_WITHIN)
    assert.equal((await all(`GET Condition/${ids.cb}`)).status, 200)
  })

  it('searches only what is reached, and tells no total that it does not know', async () => {
    const ann = fhir.as('ann')
    const found = await ann('GET Condition')
    assert.deepEqual(idsOf(found).toSorted(), [ids.ca, ids.ca2].toSorted())
    assert.equal(found.body.total, 2)
    assert.deepEqual(idsOf(await ann(`GET Condition?patient=${ids.bob}`)), [])
    assert.deepEqual(idsOf(await ann(`GET Condition?_id=${ids.cb}`)), [])
    assert.equal((await ann('GET Condition?_summary=count')).body.total, 2)
    const first = await ann('GET Condition?_count=1')
    assert.equal(idsOf(first).length, 1)
    assert.equal(first.body.total, undefined)
    assert.doesNotMatch(first.text, /127\.0\.0\.1/)
  })

  it('writes within the grant and nowhere else', async () => {
    const ann = fhir.as('ann')
    const mine = { resourceType: 'Condition', id: ids.ca, subject: { reference: `Patient/${ids.ann}` } }
    const updated = await ann(`PUT Condition/${ids.ca}`, { ...mine, code: { text: 'New' } })
    assert.equal(updated.status, 200, updated.text)
    const moved = { ...mine, subject: { reference: `Patient/${ids.bob}` } }
    assert.equal(issueOf(await ann(`PUT Condition/${ids.ca}`, moved)), NOT_WITHIN)
    assert.equal(issueOf(await ann(`PUT Condition/${ids.cb}`, { ...mine, id: ids.cb })), NOT_WITHIN)
    assert.equal(issueOf(await ann(`DELETE Condition/${ids.cb}`)), NOT_WITHIN)
    const patch = [{ op: 'replace', path: '/code/text', value: 'Newer' }]
    const patched = await ann(`PATCH Condition/${ids.ca}`, patch, {
      'content-type': 'application/json-patch+json',
    })
    assert.deepEqual([patched.status, patched.body.code], [200, { text: 'Newer' }])
    assert.equal((await ann(`DELETE Condition/${ids.ca2}`)).status, 204)
  })
})
