import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, it } from 'node:test'
import { leakyHosts, makeBundle, makeCondition, NOT_WITHIN, TestHost } from '../testing/test-host.ts'
import { fhirBaseUrl } from '../testing/test-issuer.ts'

for (const [name, start] of Object.entries(leakyHosts))
  describe(`${name}Interceptor and searches`, () => {
    const host = new TestHost(start)
    before(() => host.start())
    after(() => host.close())
    beforeEach(() => {
      host.requests = 0
    })

    it('permits a search that is limited to the patient', async () => {
      host.respondWith(makeBundle(makeCondition('1'), { resourceType: 'OperationOutcome' }))
      for (const query of [
        'patient=1',
        'patient=Patient/1',
        `patient=${fhirBaseUrl}/Patient/1`,
        'subject:Patient=1',
        'subject=Patient/1&code=x',
        'asserter=Patient/1',
      ])
        assert.equal((await host.send(`GET /Condition?${query}`)).status, 200, query)
      assert.equal((await host.send('POST /Condition/_search', undefined, 'patient=1&code=x')).status, 200)
      assert.equal((await host.send('GET /Patient/1/Condition')).status, 200)
      host.respondWith(makeBundle({ resourceType: 'Patient', id: '1' }))
      assert.equal((await host.send('GET /Patient?_id=1')).status, 200)
      host.respondWith(makeBundle({ resourceType: 'Practitioner', id: '5' }))
      assert.equal((await host.send('GET /Practitioner?name=a')).status, 200)
    })

    it('refuses any other search before it reaches the host (LIBRARY-3)', async () => {
      host.respondWith(makeBundle(makeCondition('1')))
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
        assert.equal((await host.send(line)).why, NOT_WITHIN, line)
      assert.equal((await host.send('POST /Condition/_search', undefined, 'code=x')).why, NOT_WITHIN)
      assert.equal(host.requests, 0)
    })

    it('refuses a search with another value of the patient or filter parameter, because a host may use either (LIBRARY-3)', async () => {
      host.respondWith({ resourceType: 'Bundle', type: 'searchset', total: 7 })
      for (const line of [
        'GET /Condition?patient=1&patient=2',
        'GET /Condition?patient=1&patient[]=2',
        'GET /Condition?patient=1&patient[0]=2',
        'GET /Condition?patient=1&subject=Patient/2',
        'GET /Condition?patient=1&asserter=Practitioner/5,Patient/2',
        'GET /Condition?patient=1&asserter=2',
        'GET /Patient/1/Condition?patient=2',
        'GET /Patient?_id=1&_id=2',
        'GET /Patient?_id=1&_id[]=2',
      ])
        assert.equal((await host.send(line)).why, NOT_WITHIN, line)
      const scope = 'patient/Observation.rs?category=lab'
      for (const more of ['category=vital', 'category[]=vital'])
        assert.equal(
          (await host.send(`GET /Observation?patient=1&category=lab&${more}`, scope)).why,
          NOT_WITHIN,
        )
      assert.equal(host.requests, 0)
      for (const query of ['patient=1&subject=Patient/1', 'patient=1&asserter=Practitioner/5'])
        assert.equal((await host.send(`GET /Condition?${query}`)).status, 200, query)
      assert.equal((await host.send('GET /Patient/1/Condition?patient=1')).status, 200)
    })

    it('refuses a reverse include that may reveal data of other patients (LIBRARY-3)', async () => {
      host.respondWith(makeBundle())
      for (const line of [
        'GET /Practitioner?_revinclude=Condition:asserter',
        'GET /Practitioner?_revinclude=*',
        'GET /Condition?patient=1&_revinclude:iterate=Condition:asserter',
      ])
        assert.equal((await host.send(line)).why, NOT_WITHIN, line)
      assert.equal(host.requests, 0)
      for (const line of [
        'GET /Practitioner?_revinclude=PractitionerRole:practitioner',
        'GET /Patient?_id=1&_revinclude=Condition:patient',
      ])
        assert.equal((await host.send(line)).status, 200, line)
    })

    it('requires the filters of a granular scope in the search and in the response (LIBRARY-3)', async () => {
      const scope = 'patient/Observation.rs?category=lab'
      const observation = (code: string) => ({
        resourceType: 'Observation',
        category: [{ coding: [{ code }] }],
        subject: { reference: 'Patient/1' },
      })
      host.respondWith(makeBundle(observation('lab')))
      assert.equal((await host.send('GET /Observation?patient=1', scope)).why, NOT_WITHIN)
      assert.equal((await host.send('GET /Observation?patient=1&category=lab', scope)).status, 200)
      const both = `${scope}&category=urgent`
      assert.equal((await host.send('GET /Observation?patient=1&category=lab', both)).why, NOT_WITHIN)
      host.respondWith(makeBundle())
      assert.equal(
        (await host.send('GET /Observation?patient=1&category=lab&category=urgent', both)).status,
        200,
      )
      host.respondWith(makeBundle(observation('lab'), observation('vital')))
      assert.equal((await host.send('GET /Observation?patient=1&category=lab', scope)).why, NOT_WITHIN)
      host.respondWith(observation('vital'))
      assert.equal((await host.send('GET /Observation/1', scope)).why, NOT_WITHIN)
    })

    it('permits a search for any of the filters of several scopes of one type (LIBRARY-3)', async () => {
      const scopes = 'patient/Observation.rs?category=vital-signs patient/Observation.rs?category=laboratory'
      host.respondWith(makeBundle())
      for (const query of [
        'vital-signs',
        'laboratory',
        'laboratory,vital-signs',
        'laboratory&category=vital-signs',
      ])
        assert.equal(
          (await host.send(`GET /Observation?patient=1&category=${query}`, scopes)).status,
          200,
          query,
        )
      host.requests = 0
      for (const query of ['survey', 'laboratory,survey', 'laboratory&category=survey', 'laboratory,', ''])
        assert.equal(
          (await host.send(`GET /Observation?patient=1&category=${query}`, scopes)).why,
          NOT_WITHIN,
          query,
        )
      const excluding = 'patient/Observation.rs?category:not=survey,laboratory'
      for (const query of ['survey', 'survey,laboratory,vital-signs'])
        assert.equal(
          (await host.send(`GET /Observation?patient=1&category:not=${query}`, excluding)).why,
          NOT_WITHIN,
          query,
        )
      assert.equal(host.requests, 0)
    })

    it('checks every resource in the response to a search', async () => {
      for (const stray of [
        makeCondition('2'),
        { resourceType: 'Patient', id: '2' },
        { resourceType: 'Group' },
        { resourceType: 'Observation', focus: [{ reference: 'Patient/1' }] },
        'x',
        null,
      ]) {
        host.respondWith({
          resourceType: 'Bundle',
          entry: [{ resource: makeCondition('1') }, { resource: stray }],
        })
        assert.equal((await host.send('GET /Condition?patient=1&_include=*')).why, NOT_WITHIN)
        assert.equal((await host.send('GET /Condition/1/_history')).why, NOT_WITHIN)
        assert.equal((await host.send('GET /Patient/1/$everything')).why, NOT_WITHIN)
      }
      host.respondWith(makeBundle({ resourceType: 'Patient', id: '1' }))
      assert.equal(
        (await host.send('GET /Condition?patient=1&_include=Condition:subject', 'patient/Condition.rs')).why,
        NOT_WITHIN,
      )
      assert.equal(
        (await host.send('GET /Condition?_include=Condition:subject', 'system/Condition.rs')).why,
        NOT_WITHIN,
      )
    })

    it('refuses chains through types that the grant does not cover completely', async () => {
      host.respondWith(makeBundle())
      for (const line of [
        'GET /Practitioner?_has:Observation:performer:patient=2',
        'GET /Condition?patient=1&encounter.status=planned',
        'GET /Practitioner?_has:Foo:bar:baz=1',
      ])
        assert.equal((await host.send(line)).why, NOT_WITHIN, line)
      assert.equal(host.requests, 0)
      assert.equal(
        (await host.send('GET /Practitioner?_has:Observation:performer:patient=2', 'system/*.rs')).status,
        200,
      )
    })
  })
