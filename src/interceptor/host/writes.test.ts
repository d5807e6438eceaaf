import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, it } from 'node:test'
import { AskedHost, bundle, condition, NOT_WITHIN } from '../testing/asked-host.ts'
import { fhirBaseUrl } from '../testing/auth-server.ts'
import { leakyHosts } from '../testing/leaky-hosts.ts'

for (const [name, start] of Object.entries(leakyHosts))
  describe(`${name}Interceptor and writes`, () => {
    const host = new AskedHost(start)
    before(() => host.begin())
    after(() => host.close())
    beforeEach(() => {
      host.asked = 0
    })

    it('judges the content of a create, and shows it only to those who may read', async () => {
      host.answers(condition('1', { id: '9' }), 201, { location: `${fhirBaseUrl}/Condition/9` })
      assert.equal((await host.ask('POST /Condition', undefined, condition('2'))).why, NOT_WITHIN)
      assert.equal(
        (await host.ask('POST /Condition', undefined, { resourceType: 'Observation' })).status,
        400,
      )
      assert.equal((await host.ask('POST /Condition', undefined, undefined)).why, NOT_WITHIN)
      assert.equal(host.asked, 0)
      const shown = await host.ask('POST /Condition', undefined, condition('1'))
      assert.deepEqual([shown.status, JSON.parse(shown.text).id], [201, '9'])
      const length = `${JSON.stringify(condition('1', { id: '9' })).length}`
      host.answers(condition('1', { id: '9' }), 201, {
        location: `${fhirBaseUrl}/Condition/9`,
        'content-length': length,
      })
      const unseen = await host.ask('POST /Condition', 'patient/Condition.c', condition('1'))
      assert.equal(unseen.headers.get('content-type'), null)
      assert.deepEqual([unseen.status, unseen.text, unseen.headers.get('etag')], [201, '', null])
      assert.equal(unseen.headers.get('location'), `${fhirBaseUrl}/Condition/9`)
    })

    it('judges what is stored before an update or delete, where the host tells it', async () => {
      host.answers('', 200)
      host.store.set('Condition/own', { ...condition('1'), id: 'own' })
      host.store.set('Condition/other', { ...condition('2'), id: 'other' })
      const put = (id: string, patient = '1', on = host.running) =>
        host.ask(`PUT /Condition/${id}`, undefined, condition(patient, { id }), on)
      assert.equal((await put('own')).status, 200)
      assert.equal((await put('new')).status, 200)
      assert.equal((await host.ask('DELETE /Condition/own')).status, 200)
      host.asked = 0
      assert.equal((await put('other')).why, NOT_WITHIN)
      assert.equal((await put('own', '2')).why, NOT_WITHIN)
      assert.equal((await host.ask('DELETE /Condition/other')).why, NOT_WITHIN)
      assert.equal((await host.ask('DELETE /Condition/absent')).why, NOT_WITHIN)
      const untold = await host.run()
      assert.equal((await put('own', '1', untold)).why, NOT_WITHIN)
      assert.equal((await host.ask('DELETE /Condition/own', undefined, undefined, untold)).why, NOT_WITHIN)
      assert.equal(host.asked, 0)
      assert.equal((await host.ask('DELETE /Condition/own', 'system/*.d', undefined, untold)).status, 200)
    })

    it('judges the stored version before an old one, unless told that the old one decides', async () => {
      host.store.set('Condition/own', { ...condition('1'), id: 'own' })
      host.store.set('Condition/moved', { ...condition('2'), id: 'moved' })
      const lines = ['_history', '_history/1']
      const untold = await host.run()
      const old = await host.run({ versionAccess: 'version' })
      for (const line of lines) {
        host.answers(line === '_history' ? bundle(condition('1')) : condition('1'))
        assert.equal((await host.ask(`GET /Condition/own/${line}`)).status, 200)
        assert.equal((await host.ask(`GET /Condition/moved/${line}`)).why, NOT_WITHIN)
        assert.equal((await host.ask(`GET /Condition/absent/${line}`)).why, NOT_WITHIN)
        const asked = (on: typeof untold) =>
          host.ask(`GET /Condition/moved/${line}`, undefined, undefined, on)
        assert.equal((await asked(untold)).why, NOT_WITHIN)
        assert.equal((await asked(old)).status, 200)
        assert.equal(
          (await host.ask(`GET /Condition/moved/${line}`, 'system/*.rs', undefined, untold)).status,
          200,
        )
      }
    })

    it('refuses patches and conditional writes under a limited grant', async () => {
      host.answers('', 200)
      const patch = [{ op: 'replace', path: '/code/text', value: 'x' }]
      assert.equal((await host.ask('PATCH /Condition/own', undefined, patch)).why, NOT_WITHIN)
      for (const scope of ['system/*.u', 'system/*.us patient/*.r', 'system/*.rs patient/*.u'])
        for (const line of ['PATCH /Condition/own', 'PATCH /Condition?code=1'])
          assert.match((await host.ask(line, scope, patch)).why, /^(?:Not within|Insufficient scope)/, line)
      assert.equal((await host.ask('PUT /Condition?code=1', undefined, condition('1'))).why, NOT_WITHIN)
      assert.equal((await host.ask('DELETE /Condition?patient=1')).why, NOT_WITHIN)
      assert.equal(
        (
          await host.ask('POST /Condition', undefined, condition('1'), host.running, {
            'if-none-exist': 'code=1',
          })
        ).why,
        NOT_WITHIN,
      )
      assert.equal(host.asked, 0)
      for (const line of ['PATCH /Condition/own', 'PATCH /Condition?code=1'])
        assert.equal((await host.ask(line, 'system/*.cruds', patch)).status, 200)
      assert.equal((await host.ask('DELETE /Condition?code=1', 'system/*.cruds')).status, 200)
    })

    it('judges every entry of a Bundle, and every entry of its answer', async () => {
      const batch = (...lines: [string, object?][]) => ({
        resourceType: 'Bundle',
        type: 'batch',
        entry: lines.map(([line, resource]) => ({
          request: { method: line.split(' ')[0], url: line.split(' ')[1] },
          resource,
        })),
      })
      const replied = (...entry: object[]) =>
        host.answers({ resourceType: 'Bundle', type: 'batch-response', entry })
      const both = batch(['GET Condition/1'], ['POST Condition', condition('1')])
      replied({ resource: condition('1'), response: { status: '200' } }, { response: { status: '201' } })
      assert.equal((await host.ask('POST /', undefined, both)).status, 200)
      host.asked = 0
      for (const line of ['GET Patient/2', 'GET Condition', 'DELETE Condition/other', 'GET ../Condition/1'])
        assert.match(
          String((await host.ask('POST /', undefined, batch(['GET Condition/1'], [line]))).status),
          /^40[03]$/,
          line,
        )
      assert.match(
        (await host.ask('POST /', 'patient/Condition.rs', both)).why,
        /^Insufficient scope for POST on Condition/,
      )
      assert.equal((await host.ask('POST /', undefined, undefined)).status, 400)
      assert.equal(host.asked, 0)
      for (const first of [
        { resource: condition('2'), response: { status: '200' } },
        { response: { status: '404 Not Found' } },
        {}.constructor,
      ]) {
        replied(first, { response: { status: '201' } })
        assert.equal((await host.ask('POST /', undefined, both)).why, NOT_WITHIN)
      }
      replied({ resource: condition('1') })
      assert.equal((await host.ask('POST /', undefined, both)).why, NOT_WITHIN)
      replied({ response: { status: '201' }, resource: condition('1') })
      const unseen = await host.ask(
        'POST /',
        'patient/Condition.c',
        batch(['POST Condition', condition('1')]),
      )
      assert.deepEqual([unseen.status, unseen.text], [200, ''])
    })

    it('lets no conditional reference by that the host would resolve from all of its data', async () => {
      const linked = (reference: string) => ({
        resourceType: 'Bundle',
        type: 'transaction',
        entry: [
          {
            request: { method: 'POST', url: 'Condition' },
            resource: condition('1', { encounter: { reference } }),
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
      host.answers({ resourceType: 'Bundle', entry: [{ response: { status: '201' } }] })
      assert.equal((await host.ask('POST /', undefined, subject('Patient?identifier=bob'))).why, NOT_WITHIN)
      assert.equal((await host.ask('POST /', undefined, linked('Encounter?identifier=5'))).why, NOT_WITHIN)
      assert.equal(host.asked, 0)
      assert.equal((await host.ask('POST /', undefined, linked('Encounter/5'))).status, 200)
      assert.equal(
        (await host.ask('POST /', 'system/*.cruds', subject('Patient?identifier=bob'))).status,
        200,
      )
    })
  })
