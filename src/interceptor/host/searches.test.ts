import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, it } from 'node:test'
import { AskedHost, bundle, condition, NOT_WITHIN } from '../testing/asked-host.ts'
import { fhirBaseUrl } from '../testing/auth-server.ts'
import { leakyHosts } from '../testing/leaky-hosts.ts'

for (const [name, start] of Object.entries(leakyHosts))
  describe(`${name}Interceptor and searches`, () => {
    const host = new AskedHost(start)
    before(() => host.begin())
    after(() => host.close())
    beforeEach(() => {
      host.asked = 0
    })

    it('lets a search by that narrows itself to the patient', async () => {
      host.answers(bundle(condition('1'), { resourceType: 'OperationOutcome' }))
      for (const query of [
        'patient=1',
        'patient=Patient/1',
        `patient=${fhirBaseUrl}/Patient/1`,
        'subject:Patient=1',
        'subject=Patient/1&code=x',
        'asserter=Patient/1',
      ])
        assert.equal((await host.ask(`GET /Condition?${query}`)).status, 200, query)
      assert.equal((await host.ask('POST /Condition/_search', undefined, 'patient=1&code=x')).status, 200)
      assert.equal((await host.ask('GET /Patient/1/Condition')).status, 200)
      host.answers(bundle({ resourceType: 'Patient', id: '1' }))
      assert.equal((await host.ask('GET /Patient?_id=1')).status, 200)
      host.answers(bundle({ resourceType: 'Practitioner', id: '5' }))
      assert.equal((await host.ask('GET /Practitioner?name=a')).status, 200)
    })

    it('does not ask the host for a search that does not', async () => {
      host.answers(bundle(condition('1')))
      for (const line of [
        'GET /Condition',
        'GET /Condition?patient=2',
        'GET /Condition?patient=1,2',
        'GET /Condition?subject=1',
        'GET /Condition?patient:missing=false',
        'GET /Condition?patient:identifier=1',
        'GET /Condition?_id=1',
        'GET /Patient',
        'GET /Patient?_id=1,2',
        'GET /Patient?name=a',
        'GET /Patient/1/*',
        'GET /',
        'GET /_history',
        'GET /Condition/_history',
        'GET /Condition?patient=http://other.example/fhir/Patient/1',
        'GET /Observation?focus=Patient/1',
      ])
        assert.equal((await host.ask(line)).why, NOT_WITHIN, line)
      assert.equal((await host.ask('POST /Condition/_search', undefined, 'code=x')).why, NOT_WITHIN)
      assert.equal(host.asked, 0)
    })

    it('wants the filters of a granular scope in the search, and in the answer', async () => {
      const scope = 'patient/Observation.rs?category=lab'
      const observation = (code: string) => ({
        resourceType: 'Observation',
        category: [{ coding: [{ code }] }],
        subject: { reference: 'Patient/1' },
      })
      host.answers(bundle(observation('lab')))
      assert.equal((await host.ask('GET /Observation?patient=1', scope)).why, NOT_WITHIN)
      assert.equal((await host.ask('GET /Observation?patient=1&category=lab', scope)).status, 200)
      host.answers(bundle(observation('lab'), observation('vital')))
      assert.equal((await host.ask('GET /Observation?patient=1&category=lab', scope)).why, NOT_WITHIN)
      host.answers(observation('vital'))
      assert.equal((await host.ask('GET /Observation/1', scope)).why, NOT_WITHIN)
    })

    it('does not trust the host with a search: every resource of the answer is judged', async () => {
      for (const stray of [
        condition('2'),
        { resourceType: 'Patient', id: '2' },
        { resourceType: 'Group' },
        { resourceType: 'Observation', focus: [{ reference: 'Patient/1' }] },
        'x',
        null,
      ]) {
        host.answers({ resourceType: 'Bundle', entry: [{ resource: condition('1') }, { resource: stray }] })
        assert.equal((await host.ask('GET /Condition?patient=1&_include=*')).why, NOT_WITHIN)
        assert.equal((await host.ask('GET /Condition/1/_history')).why, NOT_WITHIN)
        assert.equal((await host.ask('GET /Patient/1/$everything')).why, NOT_WITHIN)
      }
      host.answers(bundle({ resourceType: 'Patient', id: '1' }))
      assert.equal(
        (await host.ask('GET /Condition?patient=1&_include=Condition:subject', 'patient/Condition.rs')).why,
        NOT_WITHIN,
      )
      assert.equal(
        (await host.ask('GET /Condition?_include=Condition:subject', 'system/Condition.rs')).why,
        NOT_WITHIN,
      )
    })

    it('refuses chains into what is not reached as a whole', async () => {
      host.answers(bundle())
      for (const line of [
        'GET /Practitioner?_has:Observation:performer:patient=2',
        'GET /Condition?patient=1&encounter.status=planned',
        'GET /Practitioner?_has:Foo:bar:baz=1',
      ])
        assert.equal((await host.ask(line)).why, NOT_WITHIN, line)
      assert.equal(host.asked, 0)
      assert.equal(
        (await host.ask('GET /Practitioner?_has:Observation:performer:patient=2', 'system/*.rs')).status,
        200,
      )
    })
  })
