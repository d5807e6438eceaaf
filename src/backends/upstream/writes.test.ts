import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { type Access, fullAccess } from '../../smart/index.ts'
import {
  condition,
  type Fhir,
  guardOf,
  idsOf,
  issueOf,
  observation,
  patient,
  patientAccess,
} from '../sqlite/testing/fhir.ts'
import { type HostileUpstream, json, startHostile } from './testing/hostile-upstream.ts'
import { startGateway, startUpstream, type UpstreamProcess } from './testing/start-gateway.ts'

const NOT_WITHIN = '403 forbidden: Not within the granted patient, user or filter.'
const PATCH = { 'content-type': 'application/json-patch+json' }
const exclusive: Access = {
  filterFor: (type, permission) =>
    type === 'Practitioner'
      ? 'rs'.includes(permission)
        ? 'everything'
        : []
      : type === 'Patient' && permission === 'c'
        ? 'everything'
        : 'cud'.includes(permission)
          ? [{ patient: 'ann', exclusive: true }]
          : [{ patient: 'ann' }],
}
const guard = guardOf({ all: fullAccess, ann: exclusive, creator: patientAccess('ann', 'c') })

describe('writes through the gateway', () => {
  let upstream: UpstreamProcess
  let fhir: Fhir
  let all: Fhir
  let ann: Fhir
  before(async () => {
    upstream = await startUpstream()
    fhir = await startGateway(upstream.url, { guard })
    all = fhir.as('all')
    ann = fhir.as('ann')
    for (const it of [
      patient('ann'),
      patient('bob'),
      { resourceType: 'Practitioner', id: 'dr', identifier: [{ value: 'dr' }] },
      condition('ca', 'ann', { recordedDate: '2020' }),
      condition('cb', 'bob', { recordedDate: '2021' }),
    ])
      assert.equal((await all(`PUT ${it.resourceType}/${it.id}`, it)).status, 201)
  })
  after(async () => {
    await fhir.close()
    await upstream.end()
  })

  it('answer with the resource, its version and its address', async () => {
    const { id: _, ...mine } = condition('x', 'ann')
    const made = await ann('POST Condition', mine)
    assert.equal(made.status, 201)
    assert.equal(made.headers.etag, 'W/"1"')
    assert.equal(made.headers.location, `http://fhir.test/fhir/Condition/${made.body.id}/_history/1`)
    const minimal = await ann('POST Condition', mine, { prefer: 'return=minimal' })
    assert.deepEqual([minimal.status, minimal.text], [201, ''])
    const told = await ann('POST Condition', mine, { prefer: 'return=OperationOutcome' })
    assert.equal(told.body.resourceType, 'OperationOutcome')
  })

  it('keep every digit of a decimal, also of what a patch does not touch', async () => {
    const text = JSON.stringify(observation('deci', 'ann', { valueQuantity: { value: 1 } })).replace(
      '"value":1}',
      '"value":1.500}',
    )
    assert.equal((await ann('PUT Observation/deci', text)).status, 201)
    const stored = await ann('GET Observation/deci')
    const body = stored.text.includes('1.500') ? '1.500' : '1.5'
    const patched = await ann(
      'PATCH Observation/deci',
      [{ op: 'add', path: '/note', value: [{ text: 'x' }] }],
      PATCH,
    )
    assert.equal(patched.status, 200)
    assert(patched.text.includes(`"value":${body}`), patched.text)
  })

  it('are refused by the version that the caller names', async () => {
    await all('PUT Condition/v', condition('v', 'ann'))
    const stale = await ann('PUT Condition/v', condition('v', 'ann'), { 'if-match': 'W/"7"' })
    assert.equal(issueOf(stale).slice(0, 12), '412 conflict')
    assert.equal((await ann('PUT Condition/v', condition('v', 'ann'), { 'if-match': 'W/"1"' })).status, 200)
    assert.equal((await ann('DELETE Condition/v', undefined, { 'if-match': 'W/"1"' })).status, 412)
    assert.equal((await ann('PATCH Condition/v', [], { ...PATCH, 'if-match': '"2"' })).status, 200)
    assert.equal((await ann('PUT Condition/v', condition('v', 'ann'), { 'if-none-match': '*' })).status, 412)
  })

  it('judge a patch on its result', async () => {
    await all('PUT Condition/p', condition('p', 'ann'))
    const to = (reference: string) => [{ op: 'replace', path: '/subject/reference', value: reference }]
    assert.equal(issueOf(await ann('PATCH Condition/p', to('Patient/bob'), PATCH)), NOT_WITHIN)
    assert.equal((await ann('PATCH Condition/p', to('Patient/ann'), PATCH)).status, 200)
    assert.equal((await ann('PATCH Condition/p', [{ op: 'remove', path: '/subject' }], PATCH)).status, 422)
    assert.equal(
      (await ann('PATCH Condition/p', [{ op: 'replace', path: '/id', value: 'cb' }], PATCH)).status,
      400,
    )
    assert.equal((await ann('PATCH Condition/p', { not: 'a patch' }, PATCH)).status, 400)
  })

  it('of nonsense are told what is wrong with it, by place', async () => {
    const reply = await ann('POST Condition', {
      resourceType: 'Condition',
      subject: { reference: 'Patient/ann' },
      nonsense: 1,
    })
    assert.equal(reply.status, 422)
    assert.deepEqual(reply.body.issue?.[0]?.expression, ['Condition.nonsense'])
    assert.equal((await ann('POST Condition', patient('ann'))).status, 400)
    assert.equal((await ann('POST Condition', '{')).status, 400)
  })

  it('hide no search in a reference', async () => {
    const asserted = (reference: string) => {
      const { id: _, ...mine } = condition('x', 'ann', { evidence: [{ detail: [{ reference }] }] })
      return mine
    }
    assert.equal(issueOf(await ann('POST Condition', asserted('Observation?code=x'))), NOT_WITHIN)
    assert.equal((await ann('POST Condition', asserted('Observation/oa'))).status, 201)
  })

  it('with the same condition at the same time create one resource, and update it', async () => {
    const identifier = [{ system: 'urn:race', value: '1' }]
    const { id: _, ...mine } = condition('x', 'ann', { identifier })
    const replies = await Promise.all(
      Array.from({ length: 8 }, (_, at) =>
        all('PUT Condition?identifier=urn:race|1', { ...mine, note: [{ text: `${at}` }] }),
      ),
    )
    const found = await all('GET Condition?identifier=urn:race|1')
    assert.equal(found.body.total, 1, replies.map(it => it.status).join())
    const history = await all(`GET Condition/${idsOf(found)[0]}/_history`)
    const acknowledged = replies.flatMap(it => (it.status < 300 ? [it.text] : []))
    const stored = (history.body.entry ?? []).map(it => JSON.stringify(it.resource))
    assert.deepEqual(stored.toSorted(), acknowledged.toSorted())
  })

  it('with a condition look only at what is reached', async () => {
    const { id: _, ...mine } = condition('x', 'ann', { recordedDate: '2022' })
    const once = await ann('POST Condition', mine, { 'if-none-exist': 'recorded-date=2022' })
    assert.equal(once.status, 201)
    const again = await ann('POST Condition', mine, { 'if-none-exist': 'recorded-date=2022' })
    assert.deepEqual([again.status, again.body.id], [200, once.body.id])
    const moved = await ann('PUT Condition?recorded-date=2022', { ...mine, code: { text: 'Other' } })
    assert.deepEqual([moved.status, moved.body.id], [200, once.body.id])
    assert.equal((await ann('PUT Condition?recorded-date=2022', condition('other', 'ann'))).status, 400)
    const patched = await ann('PATCH Condition?recorded-date=2022', [{ op: 'remove', path: '/code' }], PATCH)
    assert.deepEqual([patched.status, patched.body.code], [200, undefined])
    assert.equal((await ann('PATCH Condition?recorded-date=2021', [], PATCH)).status, 404)
    assert.equal((await ann('DELETE Condition?recorded-date=2022')).status, 204)
    assert.equal((await ann(`GET Condition/${once.body.id}`)).status, 410)
    await ann('POST Condition', condition('x', 'ann', { recordedDate: '2023' }))
    await ann('POST Condition', condition('x', 'ann', { recordedDate: '2023' }))
    assert.equal((await ann('DELETE Condition?recorded-date=2023')).status, 412)
  })

  describe('in a batch', () => {
    it('are done one by one, each judged by itself', async () => {
      const entry = [
        { request: { method: 'GET', url: 'Condition/ca' } },
        { request: { method: 'GET', url: 'Condition/cb' } },
        { request: { method: 'POST', url: 'Condition' }, resource: condition('x', 'bob') },
        { request: { method: 'POST', url: 'Condition' }, resource: condition('x', 'ann') },
        { request: { method: 'DELETE', url: 'Condition/cb' } },
        { request: { method: 'GET', url: 'Condition?_summary=count&recorded-date=2021' } },
        { request: { method: 'GET', url: 'Patient/../Condition/cb' } },
        { request: { method: 'GET', url: 'AuditEvent' } },
      ]
      const reply = await ann('POST ', { resourceType: 'Bundle', type: 'batch', entry })
      assert.equal(reply.status, 200, reply.text)
      assert.deepEqual(reply.body.entry?.map(it => it.response?.status.slice(0, 3)).slice(0, 7), [
        '200',
        '403',
        '403',
        '201',
        '403',
        '200',
        '400',
      ])
      assert.equal(reply.body.entry?.[5]?.resource?.total, 0)
      assert.doesNotMatch(reply.text, /Patient\/bob|127\.0\.0\.1/)
      assert.equal((await all('GET Condition/cb')).status, 200)
    })
  })

  describe('in a transaction', () => {
    const transaction = (...entry: readonly object[]) => ({
      resourceType: 'Bundle',
      type: 'transaction',
      entry,
    })
    const post = (resource: object, more: object = {}) => ({
      ...more,
      resource,
      request: { method: 'POST', url: (resource as { resourceType: string }).resourceType },
    })
    const count = async () => (await all('GET Condition?_summary=count')).body.total

    it('are all done, with references between them resolved', async () => {
      const fullUrl = 'urn:uuid:00000000-0000-4000-8000-000000000001'
      const reply = await ann(
        'POST ',
        transaction(
          post(observation('x', 'ann'), { fullUrl }),
          post(observation('y', 'ann', { hasMember: [{ reference: fullUrl }] })),
          { resource: condition('t', 'ann'), request: { method: 'PUT', url: 'Condition/t' } },
          { request: { method: 'GET', url: 'Condition/ca' } },
        ),
      )
      assert.equal(reply.status, 200, reply.text)
      const [first, second, third, read] = reply.body.entry ?? []
      assert.deepEqual(
        [first, second, third, read].map(it => it?.response?.status.slice(0, 3)),
        ['201', '201', '201', '200'],
      )
      const made = first?.response?.location?.replace(/^.*\/(Observation\/[^/]+)\/.*$/, '$1')
      assert.deepEqual(second?.resource?.hasMember, [{ reference: made }])
      assert.match(String(first?.response?.location), /^http:\/\/fhir\.test\/fhir\/Observation\//)
    })

    it('write nothing when one is refused, whichever it is', async () => {
      const before = await count()
      const mine = post(condition('x', 'ann'))
      for (const other of [
        post(condition('x', 'bob')),
        { resource: condition('cb', 'ann'), request: { method: 'PUT', url: 'Condition/cb' } },
        { request: { method: 'DELETE', url: 'Condition/cb' } },
        { request: { method: 'GET', url: 'Condition/cb' } },
        { request: { method: 'GET', url: 'Condition/none' } },
        // Who is made anew is not the patient of the grant.
        post(observation('x', 'ann', { subject: { reference: 'urn:uuid:1' } })),
      ]) {
        const reply = await ann(
          'POST ',
          transaction(mine, other, post(patient('new'), { fullUrl: 'urn:uuid:1' })),
        )
        assert.equal(issueOf(reply), NOT_WITHIN, JSON.stringify(other))
        assert.deepEqual(reply.body.issue?.[0]?.expression, ['Bundle.entry[1]'])
      }
      assert.equal(await count(), before)
    })

    it('with a reference that is a search look only at what is reached', async () => {
      const about = (reference: string) => post(observation('x', 'ann', { focus: [{ reference }] }))
      const nobody = await ann('POST ', transaction(about('Condition?recorded-date=2021')))
      assert.equal(nobody.status, 404, nobody.text)
      const own = await ann('POST ', transaction(about('Condition?_id=ca')))
      assert.deepEqual(own.body.entry?.[0]?.resource?.focus, [{ reference: 'Condition/ca' }])
    })

    it('take no name that could stand for two', async () => {
      for (const fullUrl of ['http://fhir.test/fhir/Patient/ann', 'Patient/ann', 'https://x.test/1']) {
        const reply = await ann(
          'POST ',
          transaction(post(patient('new'), { fullUrl }), post(condition('x', 'ann'))),
        )
        assert.equal(reply.status, 400, fullUrl)
      }
      const twice = { resource: condition('t', 'ann'), request: { method: 'PUT', url: 'Condition/t' } }
      assert.equal((await ann('POST ', transaction(twice, twice))).status, 400)
    })

    it('with conditions are looked up before', async () => {
      const existing = (await ann('POST Condition', condition('x', 'ann', { recordedDate: '1999' }))).body.id
      const reply = await ann(
        'POST ',
        transaction(
          {
            fullUrl: 'urn:uuid:2',
            resource: condition('x', 'ann', { recordedDate: '1999' }),
            request: { method: 'POST', url: 'Condition', ifNoneExist: 'recorded-date=1999' },
          },
          post(observation('z', 'ann', { focus: [{ reference: 'urn:uuid:2' }] })),
          { request: { method: 'DELETE', url: 'Condition?recorded-date=1901' } },
          {
            resource: {
              resourceType: 'Binary',
              contentType: 'application/json-patch+json',
              data: btoa(JSON.stringify([{ op: 'remove', path: '/code' }])),
            },
            request: { method: 'PATCH', url: 'Condition/ca' },
          },
        ),
      )
      assert.equal(reply.status, 200, reply.text)
      assert.deepEqual(
        reply.body.entry?.map(it => it.response?.status.slice(0, 3)),
        ['200', '201', '204', '200'],
      )
      assert.deepEqual(reply.body.entry?.[1]?.resource?.focus, [{ reference: `Condition/${existing}` }])
      assert.equal((await all('GET Condition/ca')).body.code, undefined)
    })

    it('of a caller who may do everything go by as one', async () => {
      const reply = await all('POST ', transaction(post(condition('x', 'bob')), post(condition('x', 'ann'))))
      assert.deepEqual(
        [reply.status, reply.body.type, reply.body.entry?.length],
        [200, 'transaction-response', 2],
      )
      assert.doesNotMatch(reply.text, /127\.0\.0\.1/)
    })
  })
})

describe('a write that somebody else gets ahead of', () => {
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

  /** An upstream with one Condition, which somebody else moves after each of the first reads. */
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

  it('is judged anew, and done when it is still within reach', async () => {
    moving(['ann', 'ann', 'ann'])
    const before = puts()
    assert.equal((await ann('PUT Condition/c', condition('c', 'ann'))).status, 200)
    assert(puts() - before > 1)
  })

  it('is judged anew when it is a deletion without a version', async () => {
    moving(['ann', 'ann', 'ann'])
    assert.equal((await ann('DELETE Condition/c')).status, 204)
    moving(['ann', 'ann', 'ann'])
    assert.equal((await ann('DELETE Condition/c', undefined, { 'if-match': 'W/"1"' })).status, 412)
    moving(['ann', 'bob'])
    assert.equal(issueOf(await ann('DELETE Condition/c')), NOT_WITHIN)
  })

  it('does not bring back the match of a condition that was deleted meanwhile', async () => {
    upstream.answer((request, response) => {
      const resource = condition('c', 'ann', { identifier: [{ value: '1' }] })
      if (request.url?.includes('identifier='))
        json(response, { resourceType: 'Bundle', type: 'searchset', entry: [{ resource }] })
      else json(response, {}, request.method === 'GET' ? 404 : 201)
    })
    const before = puts()
    const { id: _, ...mine } = condition('c', 'ann', { identifier: [{ value: '1' }] })
    assert.equal(issueOf(await ann('PUT Condition?identifier=1', mine)).slice(0, 12), '412 conflict')
    assert.equal(puts(), before)
  })

  it('is refused when it has gone to another patient meanwhile', async () => {
    moving(['ann', 'bob'])
    assert.equal(issueOf(await ann('PUT Condition/c', condition('c', 'ann'))), NOT_WITHIN)
  })

  it('is not tried again where the caller named the version', async () => {
    moving(['ann', 'ann', 'ann', 'ann'])
    const before = puts()
    const reply = await ann('PUT Condition/c', condition('c', 'ann'), { 'if-match': 'W/"1"' })
    assert.deepEqual([reply.status, puts() - before], [412, 1])
  })

  it('is named by its place in the transaction of the caller, not in the one that was sent on', async () => {
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
      ...{ resourceType: 'Bundle', type: 'transaction' },
      entry: [
        { resource: condition('c', 'ann'), request: { method: 'PUT', url: 'Condition/c' } },
        { resource: created, request: { method: 'POST', url: 'Condition' } },
      ],
    })
    assert.equal(reply.status, 422, reply.text)
    assert.deepEqual(reply.body.issue?.[0]?.expression, ['Bundle.entry[1]'])
  })

  it('is not done at all where the upstream has no versions', async () => {
    upstream.answerJson(condition('c', 'ann'))
    const before = puts()
    assert.equal((await ann('PUT Condition/c', condition('c', 'ann'))).status, 501)
    assert.equal(puts(), before)
  })
})
