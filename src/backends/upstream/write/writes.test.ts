import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { exclusive } from '../../../fhir-api/testing/write-suite.ts'
import {
  condition,
  createAuthenticator,
  type Fhir,
  NOT_WITHIN,
  patient,
  readIssue,
} from '../../sqlite/testing/fhir.ts'
import { type HostileUpstream, json, startHostile } from '../testing/hostile-upstream.ts'
import { startGateway } from '../testing/start-gateway.ts'

const guard = createAuthenticator({ ann: exclusive })

describe('a write that another write precedes', () => {
  let upstream: HostileUpstream
  let ann: Fhir
  before(async () => {
    upstream = await startHostile()
    ann = (await startGateway(upstream.url, { guard })).as('ann')
  })
  after(async () => {
    await ann.close()
    await upstream.close()
  })

  /** An upstream with one Condition, which another client moves after each of the first reads. */
  function moving(versions: readonly string[]) {
    let at = 0
    upstream.answer((request, response) => {
      const patientNow = versions[Math.min(at, versions.length - 1)] ?? ''
      const etag = `W/"${Math.min(at, versions.length - 1) + 1}"`
      if (request.method === 'GET' && !request.url?.includes('_history')) {
        json(response, condition('c', patientNow), 200, { etag })
        at += 1
      } else if (request.headers['if-match'] === `W/"${Math.min(at, versions.length - 1) + 1}"`)
        json(response, condition('c', 'ann'), 200, { etag: 'W/"9"' })
      else json(response, {}, 412)
    })
  }
  const puts = () => upstream.seen.filter(it => it.line.startsWith('PUT')).length

  it('is checked again, and performed if it is still within the grant (GATEWAY-7)', async () => {
    moving(['ann', 'ann', 'ann'])
    const before = puts()
    const changed = condition('c', 'ann', { code: { text: 'Cold' } })
    assert.equal((await ann('PUT Condition/c', changed)).status, 200)
    assert(puts() - before > 1)
  })

  it('is checked again if it is a delete without a version', async () => {
    moving(['ann', 'ann', 'ann'])
    assert.equal((await ann('DELETE Condition/c')).status, 204)
    moving(['ann', 'ann', 'ann'])
    assert.equal((await ann('DELETE Condition/c', undefined, { 'if-match': 'W/"1"' })).status, 412)
    moving(['ann', 'bob'])
    assert.equal(readIssue(await ann('DELETE Condition/c')), NOT_WITHIN)
  })

  it('does not re-create the match of a condition that has been deleted', async () => {
    upstream.answer((request, response) => {
      const resource = condition('c', 'ann', { identifier: [{ value: '1' }] })
      if (request.url?.includes('identifier='))
        json(response, { resourceType: 'Bundle', type: 'searchset', entry: [{ resource }] })
      else json(response, {}, request.method === 'GET' ? 404 : 201)
    })
    const before = puts()
    const { id: _, ...mine } = condition('c', 'ann', { identifier: [{ value: '1' }] })
    assert.equal(readIssue(await ann('PUT Condition?identifier=1', mine)).slice(0, 12), '412 conflict')
    assert.equal(puts(), before)
  })

  it('is refused if the resource has been moved to another patient (GATEWAY-7)', async () => {
    moving(['ann', 'bob'])
    assert.equal(readIssue(await ann('PUT Condition/c', condition('c', 'ann'))), NOT_WITHIN)
  })

  it('is not repeated if the caller named the version', async () => {
    moving(['ann', 'ann', 'ann', 'ann'])
    const before = puts()
    const reply = await ann('PUT Condition/c', condition('c', 'ann'), { 'if-match': 'W/"1"' })
    assert.deepEqual([reply.status, puts() - before], [412, 1])
  })

  it('has its position in the transaction of the caller, not in the transaction that is sent', async () => {
    const issue = [
      { severity: 'error', code: 'value', expression: ['Bundle.entry[0].resource.code'] },
      { severity: 'error', code: 'value', expression: null },
    ]
    upstream.answer((request, response) => {
      if (request.method === 'GET') json(response, {}, 404)
      else json(response, { resourceType: 'OperationOutcome', issue }, 422)
    })
    const { id: _, ...created } = condition('x', 'ann')
    const reply = await ann('POST ', {
      resourceType: 'Bundle',
      type: 'transaction',
      entry: [
        { resource: condition('c', 'ann'), request: { method: 'PUT', url: 'Condition/c' } },
        { resource: created, request: { method: 'POST', url: 'Condition' } },
      ],
    })
    assert.equal(reply.status, 422, reply.text)
    assert.deepEqual(reply.body.issue?.[0]?.expression, ['Bundle.entry[1]'])
  })

  it('is not reported as done if the upstream carries out only other entries of the transaction', async () => {
    const entry = ['201 Created', '422 Unprocessable Content'].map(status => ({ response: { status } }))
    upstream.answerJson({ resourceType: 'Bundle', type: 'transaction-response', entry })
    const { id: _, ...resource } = condition('x', 'ann')
    const add = { resource, request: { method: 'POST', url: 'Condition' } }
    const reply = await ann('POST ', { resourceType: 'Bundle', type: 'transaction', entry: [add, add] })
    assert.match(readIssue(reply), /^502 .* The change may have been carried out/)
    assert.deepEqual(reply.body.issue?.[0]?.expression, ['Bundle.entry[1]'])
  })

  it('is not sent in a transaction with a fullUrl that could stand for two resources', async () => {
    const before = upstream.seen.length
    for (const fullUrl of ['http://fhir.test/fhir/Patient/ann', 'Patient/ann', 'https://x.test/1']) {
      const entry = [
        { fullUrl, resource: patient('new'), request: { method: 'POST', url: 'Patient' } },
        { resource: condition('x', 'ann'), request: { method: 'POST', url: 'Condition' } },
      ]
      const reply = await ann('POST ', { resourceType: 'Bundle', type: 'transaction', entry })
      assert.equal(reply.status, 400, fullUrl)
    }
    assert.equal(upstream.seen.length, before)
  })

  it('is refused if the upstream has no versions (GATEWAY-7)', async () => {
    upstream.answerJson(condition('c', 'ann'))
    const before = puts()
    assert.equal((await ann('PUT Condition/c', condition('c', 'ann'))).status, 501)
    assert.equal(puts(), before)
  })
})
