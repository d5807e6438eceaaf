import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, it } from 'node:test'
import { bundle, type ScriptedEhr, startScriptedEhr } from '../../../test/support/scripted-ehr.ts'
import { API_PATHS, PATIENT, useSessionApi } from '../../../test/support/session-api.ts'
import { APP_SCOPE, launchBrowser, sessionApp } from '../../../test/support/session-app.ts'

describe('the session API', () => {
  const api = useSessionApi()

  for (const path of API_PATHS) {
    describe(`GET ${path}`, () => {
      it('returns JSON that must not be cached (API-1)', async () => {
        const response = await api.browser.get(path)
        assert.equal(response.statusCode, 200)
        assert.equal(response.headers['content-type'], 'application/json; charset=utf-8')
        assert.equal(response.headers['cache-control'], 'no-store')
        assert.ok(response.headers['x-request-id'])
      })

      it('returns 401 login without a session or with an unknown session (API-1, API-11)', async () => {
        const name = `sallyport-session-${randomUUID()}`
        for (const cookies of [{}, { [name]: 'x' }, { [name]: '' }]) {
          const response = await api.app.inject({ method: 'GET', url: path, cookies })
          assert.equal(response.statusCode, 401)
          const { resourceType, issue } = response.json()
          assert.equal(resourceType, 'OperationOutcome')
          assert.equal(issue[0].severity, 'error')
          assert.equal(issue[0].code, 'login')
          assert.equal(issue[0].diagnostics, issue[0].details.text)
        }
      })

      it('returns 400 invalid for an unknown parameter and names it (API-11)', async () => {
        const response = await api.browser.get(`${path}?patient=fennel`)
        assert.equal(response.statusCode, 400)
        assert.equal(response.json().issue[0].code, 'invalid')
        assert.match(response.json().issue[0].details.text, /patient/)
      })

      it('accepts no other method', async () => {
        const response = await api.browser.post(path)
        assert.equal(response.statusCode, 405)
        assert.equal(response.json().resourceType, 'OperationOutcome')
      })

      it('never shows a token (API-1)', async () => {
        const response = await api.browser.get(path)
        const text = JSON.stringify([response.headers, response.body])
        for (const token of api.ehr.issued) assert.ok(!text.includes(token))
      })
    })
  }

  describe('GET /api/session', () => {
    it('returns exactly the fields of API-2 (API-2)', async () => {
      const body = (await api.browser.get('/api/session')).json()
      assert.deepEqual(Object.keys(body).sort(), [
        'encounterId',
        'expiresAt',
        'fhirBaseUrl',
        'needPatientBanner',
        'patientId',
        'scopes',
        'secondsRemaining',
        'sessionId',
      ])
      assert.deepEqual(body.scopes, APP_SCOPE.split(' '))
      assert.equal(body.fhirBaseUrl, api.ehr.fhirBaseUrl)
    })

    it('omits encounterId if there is none (API-2)', async () => {
      api.ehr.script.token = { encounter: undefined }
      const other = await launchBrowser(api.app, api.ehr.fhirBaseUrl)
      assert.equal('encounterId' in (await other.get('/api/session')).json(), false)
    })

    it('needs no scope (API-2)', async () => {
      const other = await api.withScope('launch')
      assert.equal((await other.get('/api/session')).statusCode, 200)
    })
  })

  describe('GET /api/me', () => {
    it('returns the clinician of the ID token (API-3)', async () => {
      assert.deepEqual((await api.browser.get('/api/me')).json(), {
        subject: 'clinician-1',
        fhirUser: 'Practitioner/prac-1',
        name: 'Dr. Robin Ahmadi',
        practitionerId: 'prac-1',
      })
    })

    for (const [fhirUser, shown] of [
      ['Practitioner/p-2', { fhirUser: 'Practitioner/p-2', practitionerId: 'p-2' }],
      ['Patient/juniper', { fhirUser: 'Patient/juniper' }],
      ['https://other.example/fhir/Practitioner/p-2', {}],
      ['not a reference', {}],
    ] as const) {
      it(`shows fhirUser ${fhirUser} as ${JSON.stringify(shown)} (API-3)`, async () => {
        api.ehr.script.claims = { fhirUser }
        const other = await launchBrowser(api.app, api.ehr.fhirBaseUrl)
        const body = (await other.get('/api/me')).json()
        assert.deepEqual(body, { subject: 'clinician-1', name: 'Dr. Robin Ahmadi', ...shown })
      })
    }
  })

  describe('GET /api/patient', () => {
    it('returns the Patient unchanged (API-4)', async () => {
      assert.deepEqual((await api.browser.get('/api/patient')).json(), PATIENT)
    })

    it('returns 502 if the FHIR server returns another patient', async () => {
      api.ehr.script.fhir = () => ({ ...PATIENT, id: 'fennel' })
      const response = await api.browser.get('/api/patient')
      assert.equal(response.statusCode, 502)
      assert.ok(!response.body.includes('Juniper'))
    })
  })

  describe('GET /api/summary', () => {
    it('contains the resources that the three endpoints return by default (API-7)', async () => {
      const [summary, patient, conditions, medications] = await Promise.all(
        ['/api/summary', '/api/patient', '/api/conditions', '/api/medications'].map(async path =>
          (await api.browser.get(path)).json(),
        ),
      )
      const resources = (body: { entry: { resource: unknown }[] }) =>
        body.entry.map(({ resource }) => resource)
      assert.deepEqual(summary, {
        patient,
        conditions: resources(conditions),
        medications: resources(medications),
      })
    })

    it('fails as a whole when a part fails', async () => {
      api.ehr.script.fhir = (url, reply) =>
        url.pathname.endsWith('/Condition')
          ? reply.code(500).send()
          : url.pathname.includes('/Patient/')
            ? PATIENT
            : bundle([])
      const response = await api.browser.get('/api/summary')
      assert.equal(response.statusCode, 502)
      assert.ok(!response.body.includes('Juniper'))
    })
  })

  describe('required scopes', () => {
    for (const [path, needed] of [
      ['/api/me', 'openid fhirUser'],
      ['/api/patient', 'patient/Patient.rs'],
      ['/api/conditions', 'patient/Condition.rs'],
      ['/api/medications', 'patient/MedicationRequest.rs'],
      ['/api/summary', 'patient/Patient.rs patient/Condition.rs patient/MedicationRequest.rs'],
      ['/api/vitals', 'patient/Observation.rs'],
    ] as const) {
      it(`${path} returns 403 forbidden without ${needed}, names it, and sends no FHIR request (API-11)`, async () => {
        const other = await api.withScope('launch')
        const before = api.ehr.seen.length
        const response = await other.get(path)
        assert.equal(response.statusCode, 403)
        assert.equal(response.json().issue[0].code, 'forbidden')
        assert.ok(response.json().issue[0].details.text.includes(needed))
        assert.equal(api.ehr.seen.length, before)
      })

      it(`${path} succeeds with ${needed} alone`, async () => {
        const other = await api.withScope(`launch ${needed}`)
        assert.equal((await other.get(path)).statusCode, 200)
      })
    }

    it('are met by wider scopes', async () => {
      const other = await api.withScope('patient/*.rs')
      assert.equal((await other.get('/api/summary')).statusCode, 200)
    })

    it('of a summary name only the missing scopes (API-7)', async () => {
      const other = await api.withScope('patient/Patient.read user/Condition.rs')
      const text: string = (await other.get('/api/summary')).json().issue[0].details.text
      assert.match(text, /Not granted: patient\/MedicationRequest\.rs$/)
    })
  })

  describe('a failing FHIR server', () => {
    for (const [what, answer, status, code] of [
      ['500', (reply: R) => reply.code(500).send(), 502, 'transient'],
      ['503', (reply: R) => reply.code(503).send(), 502, 'transient'],
      ['429', (reply: R) => reply.code(429).send(), 502, 'transient'],
      ['504', (reply: R) => reply.code(504).send(), 504, 'transient'],
      ['403', (reply: R) => reply.code(403).send(), 403, 'forbidden'],
      ['404', (reply: R) => reply.code(404).send(), 404, 'not-found'],
      ['410', (reply: R) => reply.code(410).send(), 404, 'not-found'],
      ['400', (reply: R) => reply.code(400).send(), 502, 'transient'],
      ['no JSON', (reply: R) => reply.type('text/html').send('<p>Hello'), 502, 'transient'],
      ['another resource', (reply: R) => reply.send({ resourceType: 'Basic' }), 502, 'transient'],
      ['a malformed resource', (reply: R) => reply.send({ ...PATIENT, birthDate: 5 }), 502, 'transient'],
    ] as const) {
      it(`is ${status} ${code} for ${what}`, async () => {
        api.ehr.script.fhir = (_url, reply) => answer(reply)
        const response = await api.browser.get('/api/patient')
        assert.equal(response.statusCode, status)
        assert.equal(response.json().resourceType, 'OperationOutcome')
        assert.equal(response.json().issue[0].code, code)
      })
    }

    it('causes 504 transient if it does not respond in time (API-11)', async () => {
      api.ehr.script.fhir = () => new Promise(() => {})
      const impatient = await sessionApp(api.store, [api.ehr.fhirBaseUrl], {
        clock: api.clock,
        app: { timeoutSeconds: 0.1 },
      })
      const cookies = Object.fromEntries(api.browser.cookies)
      const response = await impatient.inject({ method: 'GET', url: '/api/patient', cookies })
      assert.equal(response.statusCode, 504)
      assert.equal(response.json().issue[0].code, 'transient')
    })

    it('causes 502 transient if it is unreachable, and the session continues (API-11)', async () => {
      const stopping = await startScriptedEhr()
      const separateApp = await sessionApp(api.store, [stopping.fhirBaseUrl], { clock: api.clock })
      const other = await launchBrowser(separateApp, stopping.fhirBaseUrl)
      await stopping.close()
      const response = await other.get('/api/summary')
      assert.equal(response.statusCode, 502)
      assert.equal(response.json().issue[0].code, 'transient')
      assert.equal((await other.get('/api/session')).statusCode, 200)
    })
  })

  describe('an unknown URL', () => {
    it('returns 404 with an OperationOutcome', async () => {
      for (const path of ['/api', '/api/', '/api/nothing', '/api/patient/1']) {
        const response = await api.browser.get(path)
        assert.equal(response.statusCode, 404, path)
        assert.equal(response.json().resourceType, 'OperationOutcome')
      }
    })
  })
})

type R = Parameters<NonNullable<ScriptedEhr['script']['fhir']>>[1]
