import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, it } from 'node:test'
import { leakyHosts, makeBundle, makeCondition, NOT_WITHIN, TestHost } from '../testing/test-host.ts'
import { fhirBaseUrl } from '../testing/test-issuer.ts'

for (const [name, start] of Object.entries(leakyHosts))
  describe(`${name}Interceptor and writes`, () => {
    const host = new TestHost(start)
    before(() => host.start())
    after(() => host.close())
    beforeEach(() => {
      host.requests = 0
    })

    it('checks the content of a create, and shows it only with read access', async () => {
      host.respondWith(makeCondition('1', { id: '9' }), 201, { location: `${fhirBaseUrl}/Condition/9` })
      assert.equal((await host.send('POST /Condition', undefined, makeCondition('2'))).why, NOT_WITHIN)
      assert.equal(
        (await host.send('POST /Condition', undefined, { resourceType: 'Observation' })).status,
        400,
      )
      assert.equal((await host.send('POST /Condition', undefined, undefined)).why, NOT_WITHIN)
      assert.equal(host.requests, 0)
      const shown = await host.send('POST /Condition', undefined, makeCondition('1'))
      assert.deepEqual([shown.status, JSON.parse(shown.text).id], [201, '9'])
      const length = `${JSON.stringify(makeCondition('1', { id: '9' })).length}`
      host.respondWith(makeCondition('1', { id: '9' }), 201, {
        location: `${fhirBaseUrl}/Condition/9`,
        'content-length': length,
      })
      const unseen = await host.send('POST /Condition', 'patient/Condition.c', makeCondition('1'))
      assert.equal(unseen.headers.get('content-type'), null)
      assert.deepEqual([unseen.status, unseen.text, unseen.headers.get('etag')], [201, '', null])
      assert.equal(unseen.headers.get('location'), `${fhirBaseUrl}/Condition/9`)
    })

    it('refuses X-Provenance under a grant that does not cover every Provenance (WRITE-15)', async () => {
      host.respondWith(makeCondition('1', { id: '9' }), 201)
      const provenance = { 'x-provenance': '{"resourceType":"Provenance"}' }
      const create = (scope?: string) =>
        host.send('POST /Condition', scope, makeCondition('1'), host.running, provenance)
      for (const scope of [undefined, 'system/Condition.c'])
        assert.equal((await create(scope)).why, NOT_WITHIN)
      assert.equal(host.requests, 0)
      assert.equal((await create('system/*.cruds')).status, 201)
    })

    it('checks the stored content before an update or delete, if the host provides it (LIBRARY-4)', async () => {
      host.respondWith('', 200)
      host.store.set('Condition/own', { ...makeCondition('1'), id: 'own' })
      host.store.set('Condition/other', { ...makeCondition('2'), id: 'other' })
      const put = (id: string, patient = '1', on = host.running) =>
        host.send(`PUT /Condition/${id}`, undefined, makeCondition(patient, { id }), on)
      assert.equal((await put('own')).status, 200)
      assert.equal((await put('new')).status, 200)
      assert.equal((await host.send('DELETE /Condition/own')).status, 200)
      host.requests = 0
      assert.equal((await put('other')).why, NOT_WITHIN)
      assert.equal((await put('own', '2')).why, NOT_WITHIN)
      assert.equal((await host.send('DELETE /Condition/other')).why, NOT_WITHIN)
      assert.equal((await host.send('DELETE /Condition/absent')).why, NOT_WITHIN)
      const withoutStored = await host.run()
      assert.equal((await put('own', '1', withoutStored)).why, NOT_WITHIN)
      assert.equal(
        (await host.send('DELETE /Condition/own', undefined, undefined, withoutStored)).why,
        NOT_WITHIN,
      )
      assert.equal(host.requests, 0)
      assert.equal(
        (await host.send('DELETE /Condition/own', 'system/*.d', undefined, withoutStored)).status,
        200,
      )
    })

    it('refuses to change a resource if the host finds another one by its id alone (LIBRARY-4)', async () => {
      const own = { resourceType: 'Observation', id: 'shared', subject: { reference: 'Patient/1' } }
      host.store.set('Condition/shared', own)
      host.store.set('Observation/shared', own)
      const scope = 'patient/Condition.cruds'
      const put = makeCondition('1', { id: 'shared' })
      assert.equal((await host.send('PUT /Condition/shared', scope, put)).why, NOT_WITHIN)
      for (const line of ['DELETE /Condition/shared', 'GET /Condition/shared/_history'])
        assert.equal((await host.send(line, scope)).why, NOT_WITHIN, line)
      assert.equal(host.requests, 0)
      host.respondWith('', 204)
      assert.equal((await host.send('DELETE /Observation/shared')).status, 204)
    })

    it('checks the current version before an old one, unless the setting says otherwise', async () => {
      host.store.set('Condition/own', { ...makeCondition('1'), id: 'own' })
      host.store.set('Condition/moved', { ...makeCondition('2'), id: 'moved' })
      const lines = ['_history', '_history/1']
      const withoutStored = await host.run()
      const old = await host.run({ versionAccess: 'version' })
      for (const line of lines) {
        host.respondWith(line === '_history' ? makeBundle(makeCondition('1')) : makeCondition('1'))
        assert.equal((await host.send(`GET /Condition/own/${line}`)).status, 200)
        assert.equal((await host.send(`GET /Condition/moved/${line}`)).why, NOT_WITHIN)
        assert.equal((await host.send(`GET /Condition/absent/${line}`)).why, NOT_WITHIN)
        const readOld = (on: typeof withoutStored) =>
          host.send(`GET /Condition/moved/${line}`, undefined, undefined, on)
        assert.equal((await readOld(withoutStored)).why, NOT_WITHIN)
        assert.equal((await readOld(old)).status, 200)
        assert.equal(
          (await host.send(`GET /Condition/moved/${line}`, 'system/*.rs', undefined, withoutStored)).status,
          200,
        )
      }
    })

    it('refuses patches and conditional writes under a limited grant (LIBRARY-4)', async () => {
      host.respondWith('', 200)
      const patch = [{ op: 'replace', path: '/code/text', value: 'x' }]
      assert.equal((await host.send('PATCH /Condition/own', undefined, patch)).why, NOT_WITHIN)
      for (const scope of ['system/*.u', 'system/*.us patient/*.r', 'system/*.rs patient/*.u'])
        for (const line of ['PATCH /Condition/own', 'PATCH /Condition?code=1'])
          assert.match((await host.send(line, scope, patch)).why, /^(?:Not within|Insufficient scope)/, line)
      assert.equal((await host.send('PUT /Condition?code=1', undefined, makeCondition('1'))).why, NOT_WITHIN)
      assert.equal((await host.send('DELETE /Condition?patient=1')).why, NOT_WITHIN)
      assert.equal(
        (
          await host.send('POST /Condition', undefined, makeCondition('1'), host.running, {
            'if-none-exist': 'code=1',
          })
        ).why,
        NOT_WITHIN,
      )
      assert.equal(host.requests, 0)
      for (const line of ['PATCH /Condition/own', 'PATCH /Condition?code=1'])
        assert.equal((await host.send(line, 'system/*.cruds', patch)).status, 200)
      assert.equal((await host.send('DELETE /Condition?code=1', 'system/*.cruds')).status, 200)
    })

    it('checks every entry of a Bundle, and every entry of the response', async () => {
      const batch = (...lines: [string, object?][]) => ({
        resourceType: 'Bundle',
        type: 'batch',
        entry: lines.map(([line, resource]) => ({
          request: { method: line.split(' ')[0], url: line.split(' ')[1] },
          resource,
        })),
      })
      const replied = (...entry: object[]) =>
        host.respondWith({ resourceType: 'Bundle', type: 'batch-response', entry })
      const both = batch(['GET Condition/1'], ['POST Condition', makeCondition('1')])
      replied({ resource: makeCondition('1'), response: { status: '200' } }, { response: { status: '201' } })
      assert.equal((await host.send('POST /', undefined, both)).status, 200)
      host.requests = 0
      for (const line of ['GET Patient/2', 'GET Condition', 'DELETE Condition/other', 'GET ../Condition/1'])
        assert.match(
          String((await host.send('POST /', undefined, batch(['GET Condition/1'], [line]))).status),
          /^40[03]$/,
          line,
        )
      assert.match(
        (await host.send('POST /', 'patient/Condition.rs', both)).why,
        /^Insufficient scope for POST on Condition/,
      )
      assert.equal((await host.send('POST /', undefined, undefined)).status, 400)
      assert.equal(host.requests, 0)
      for (const first of [
        { resource: makeCondition('2'), response: { status: '200' } },
        { response: { status: '404 Not Found' } },
        {}.constructor,
      ]) {
        replied(first, { response: { status: '201' } })
        const { status, text, headers } = await host.send('POST /', undefined, both)
        const { entry } = JSON.parse(text)
        assert.deepEqual([status, headers.get('etag'), entry.length], [200, null, 2])
        assert.equal(entry[0].response.outcome.issue[0].details.text, NOT_WITHIN)
        assert.deepEqual([Object.keys(entry[0]), entry[1]], [['response'], { response: { status: '201' } }])
      }
      replied({ resource: makeCondition('1') })
      assert.equal((await host.send('POST /', undefined, both)).why, NOT_WITHIN)
      replied({ response: { status: '201' }, resource: makeCondition('1') })
      const unseen = await host.send(
        'POST /',
        'patient/Condition.c',
        batch(['POST Condition', makeCondition('1')]),
      )
      assert.deepEqual(
        [unseen.status, JSON.parse(unseen.text).entry],
        [200, [{ response: { status: '201' } }]],
      )
    })

    it('refuses conditional references that the host would resolve from all of its data', async () => {
      const linked = (reference: string) => ({
        resourceType: 'Bundle',
        type: 'transaction',
        entry: [
          {
            request: { method: 'POST', url: 'Condition' },
            resource: makeCondition('1', { encounter: { reference } }),
          },
        ],
      })
      const subject = (reference: string) => ({
        resourceType: 'Bundle',
        type: 'transaction',
        entry: [
          {
            request: { method: 'POST', url: 'Condition' },
            resource: { resourceType: 'Condition', subject: { reference } },
          },
        ],
      })
      host.respondWith({ resourceType: 'Bundle', entry: [{ response: { status: '201' } }] })
      assert.equal((await host.send('POST /', undefined, subject('Patient?identifier=bob'))).why, NOT_WITHIN)
      assert.equal((await host.send('POST /', undefined, linked('Encounter?identifier=5'))).why, NOT_WITHIN)
      assert.equal(host.requests, 0)
      assert.equal((await host.send('POST /', undefined, linked('Encounter/5'))).status, 200)
      assert.equal(
        (await host.send('POST /', 'system/*.cruds', subject('Patient?identifier=bob'))).status,
        200,
      )
    })
  })
