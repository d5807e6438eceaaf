import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, it } from 'node:test'
import { type FastifyInstance, fastify } from 'fastify'
import type { AppBrowser } from '../../../test/support/app-browser.ts'
import { bundle, type ScriptedEhr, startScriptedEhr } from '../../../test/support/scripted-ehr.ts'
import {
  APP_SCOPE,
  launched,
  sessionApp,
  temporaryStore,
  testClock,
} from '../../../test/support/session-app.ts'
import type { Store } from '../../store/index.ts'

const SUBJECT = { reference: 'Patient/juniper' }
const PATIENT = {
  resourceType: 'Patient',
  id: 'juniper',
  name: [{ family: 'Juniper', given: ['Alba', null] }],
  birthDate: '1958-03-14',
  gender: 'female',
  active: true,
}

function condition(id: string, recordedDate?: string, status = 'active') {
  return {
    resourceType: 'Condition',
    id,
    subject: SUBJECT,
    code: {
      coding: [{ system: 'http://snomed.info/sct', code: '49436004', display: 'Atrial fibrillation' }],
    },
    clinicalStatus: { coding: [{ code: status }] },
    ...(recordedDate === undefined ? {} : { recordedDate }),
  }
}

function medication(id: string, status = 'active', authoredOn = '2026-01-01') {
  return { resourceType: 'MedicationRequest', id, subject: SUBJECT, status, authoredOn }
}

function vital(id: string, effectiveDateTime: string) {
  return { resourceType: 'Observation', id, subject: SUBJECT, status: 'final', effectiveDateTime }
}

describe('the session API', () => {
  let ehr: ScriptedEhr
  let store: Store
  let app: FastifyInstance
  let browser: AppBrowser
  const clock = testClock()

  before(async () => {
    store = await temporaryStore()
    ehr = await startScriptedEhr()
    app = await sessionApp(store, [ehr.fhirBaseUrl], { clock })
  })
  beforeEach(async () => {
    ehr.reset()
    ehr.records.push(
      PATIENT,
      condition('older', '2019-04-01'),
      condition('undated'),
      condition('newest', '2026-10-02'),
      condition('healed', '2026-11-01', 'resolved'),
      medication('m1'),
      medication('m2', 'stopped'),
      medication('m3', 'active', '2026-06-01'),
      vital('v1', '2026-01-01T10:00:00Z'),
      vital('v2', '2026-03-01T10:00:00Z'),
    )
    browser = await launched(app, ehr.fhirBaseUrl)
  })
  after(async () => {
    await ehr.close()
    await store.close()
  })

  const ids = (body: { entry: { resource: { id: string } }[] }) =>
    body.entry.map(({ resource }) => resource.id)
  const lastSearch = () => new URL(ehr.seen.at(-1)?.path ?? '', ehr.issuer)

  async function withScope(scope: string): Promise<AppBrowser> {
    ehr.script.token = { scope, ...(scope.split(' ').includes('openid') ? {} : { id_token: undefined }) }
    return launched(app, ehr.fhirBaseUrl)
  }

  const PATHS = [
    '/api/session',
    '/api/me',
    '/api/patient',
    '/api/conditions',
    '/api/medications',
    '/api/summary',
    '/api/vitals',
  ] as const

  for (const path of PATHS) {
    describe(`GET ${path}`, () => {
      it('answers with JSON that nobody stores', async () => {
        const response = await browser.get(path)
        assert.equal(response.statusCode, 200)
        assert.equal(response.headers['content-type'], 'application/json; charset=utf-8')
        assert.equal(response.headers['cache-control'], 'no-store')
        assert.ok(response.headers['x-request-id'])
      })

      it('is 401 login without a session, or with one that it does not know', async () => {
        for (const cookies of [{}, { 'sallyport-app': 'x' }, { 'sallyport-app': '' }]) {
          const response = await app.inject({ method: 'GET', url: path, cookies })
          assert.equal(response.statusCode, 401)
          const { resourceType, issue } = response.json()
          assert.equal(resourceType, 'OperationOutcome')
          assert.equal(issue[0].severity, 'error')
          assert.equal(issue[0].code, 'login')
        }
      })

      it('is 400 invalid for a parameter that it does not have, and names it', async () => {
        const response = await browser.get(`${path}?patient=fennel`)
        assert.equal(response.statusCode, 400)
        assert.equal(response.json().issue[0].code, 'invalid')
        assert.match(response.json().issue[0].details.text, /patient/)
      })

      it('takes no other method', async () => {
        const response = await browser.post(path)
        assert.equal(response.statusCode, 405)
        assert.equal(response.json().resourceType, 'OperationOutcome')
      })

      it('never shows a token', async () => {
        const response = await browser.get(path)
        const text = JSON.stringify([response.headers, response.body])
        for (const token of ehr.issued) assert.ok(!text.includes(token))
      })
    })
  }

  describe('GET /api/session', () => {
    it('gives exactly the fields of service.md 2.3 and the session id', async () => {
      const body = (await browser.get('/api/session')).json()
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
      assert.equal(body.fhirBaseUrl, ehr.fhirBaseUrl)
    })

    it('leaves encounterId out when there is none', async () => {
      ehr.script.token = { encounter: undefined }
      const other = await launched(app, ehr.fhirBaseUrl)
      assert.equal('encounterId' in (await other.get('/api/session')).json(), false)
    })

    it('needs no scope', async () => {
      const other = await withScope('launch')
      assert.equal((await other.get('/api/session')).statusCode, 200)
    })
  })

  describe('GET /api/me', () => {
    it('gives the clinician of the id_token', async () => {
      assert.deepEqual((await browser.get('/api/me')).json(), {
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
      it(`shows fhirUser ${fhirUser} as ${JSON.stringify(shown)}`, async () => {
        ehr.script.claims = { fhirUser }
        const other = await launched(app, ehr.fhirBaseUrl)
        const body = (await other.get('/api/me')).json()
        assert.deepEqual(body, { subject: 'clinician-1', name: 'Dr. Robin Ahmadi', ...shown })
      })
    }
  })

  describe('GET /api/patient', () => {
    it('gives the Patient as the FHIR server has it', async () => {
      assert.deepEqual((await browser.get('/api/patient')).json(), PATIENT)
    })

    it('is 502 when the FHIR server gives another one', async () => {
      ehr.script.fhir = () => ({ ...PATIENT, id: 'fennel' })
      const response = await browser.get('/api/patient')
      assert.equal(response.statusCode, 502)
      assert.ok(!response.body.includes('Juniper'))
    })
  })

  describe('GET /api/conditions', () => {
    it('asks for the active ones of the patient, sorted', async () => {
      await browser.get('/api/conditions')
      const { pathname, searchParams } = lastSearch()
      assert.equal(pathname, '/fhir/Condition')
      assert.equal(searchParams.get('patient'), 'juniper')
      assert.equal(searchParams.get('clinical-status'), 'active')
      assert.equal(searchParams.get('_sort'), '-recorded-date')
    })

    it('gives them newest first, the undated last, with a total', async () => {
      const body = (await browser.get('/api/conditions')).json()
      assert.deepEqual(ids(body), ['newest', 'older', 'undated'])
      assert.equal(body.resourceType, 'Bundle')
      assert.equal(body.total, 3)
    })

    it('gives another status when asked', async () => {
      assert.deepEqual(ids((await browser.get('/api/conditions?status=resolved')).json()), ['healed'])
    })

    it('gives the newest _count, and the total of all', async () => {
      const body = (await browser.get('/api/conditions?_count=2')).json()
      assert.deepEqual(ids(body), ['newest', 'older'])
      assert.equal(body.total, 3)
    })

    it('gives 50 by default', async () => {
      ehr.records.push(...Array.from({ length: 60 }, (_, at) => condition(`c${at}`, '2020-01-01')))
      const body = (await browser.get('/api/conditions')).json()
      assert.equal(body.entry.length, 50)
      assert.equal(body.total, 63)
    })

    it('gives an empty Bundle when there are none', async () => {
      const body = (await browser.get('/api/conditions?status=relapse')).json()
      assert.deepEqual(body, { resourceType: 'Bundle', type: 'searchset', total: 0, entry: [] })
    })

    for (const query of [
      'status=',
      'status=Active',
      'status=activ',
      'status=active,resolved',
      'status=active%26patient=fennel',
      'status=active&status=resolved',
      '_count=',
      '_count=0',
      '_count=1001',
      '_count=-1',
      '_count=1.5',
      '_count=1e2',
      '_count=0x10',
      '_count=%201',
      '_count=ten',
      '_count=5&_count=6',
      'constructor=1',
      '__proto__=1',
      '_sort=recorded-date',
    ]) {
      it(`refuses ${query}`, async () => {
        const before = ehr.seen.length
        const response = await browser.get(`/api/conditions?${query}`)
        assert.equal(response.statusCode, 400)
        assert.equal(response.json().issue[0].code, 'invalid')
        assert.equal(ehr.seen.length, before)
      })
    }

    it('leaves out what is of another patient, of no patient, or not a match', async () => {
      ehr.script.fhir = () =>
        bundle([
          condition('mine'),
          {
            ...condition('absolute'),
            subject: { reference: `${ehr.fhirBaseUrl}/Patient/juniper/_history/2` },
          },
          { ...condition('other'), subject: { reference: 'Patient/fennel' } },
          { ...condition('prefix'), subject: { reference: 'Patient/juniper2' } },
          { ...condition('group'), subject: { reference: 'Group/juniper' } },
          { ...condition('nobody'), subject: { identifier: { value: 'juniper' } } },
          { ...condition('none'), subject: undefined },
          medication('m9'),
        ])
      const body = (await browser.get('/api/conditions')).json()
      assert.deepEqual(ids(body), ['mine', 'absolute'])
      assert.equal(body.total, 2)
    })

    it('leaves out includes and outcomes', async () => {
      ehr.script.fhir = () => ({
        resourceType: 'Bundle',
        entry: [
          { resource: condition('match'), search: { mode: 'match' } },
          { resource: condition('included'), search: { mode: 'include' } },
          { resource: { resourceType: 'OperationOutcome' }, search: { mode: 'outcome' } },
        ],
      })
      assert.deepEqual(ids((await browser.get('/api/conditions')).json()), ['match'])
    })
  })

  describe('GET /api/medications', () => {
    it('gives the active ones, newest first', async () => {
      const body = (await browser.get('/api/medications')).json()
      assert.deepEqual(ids(body), ['m3', 'm1'])
      assert.equal(body.total, 2)
      assert.equal(lastSearch().searchParams.get('status'), 'active')
    })

    function paged(pages: number, size: number) {
      ehr.script.fhir = (url: URL) => {
        const page = Number(url.searchParams.get('page') ?? 0)
        const resources = Array.from({ length: size }, (_, at) => medication(`m${page}-${at}`))
        const next = { relation: 'next', url: `${ehr.fhirBaseUrl}/MedicationRequest?page=${page + 1}` }
        return bundle(resources, { total: pages * size, ...(page + 1 < pages ? { link: [next] } : {}) })
      }
    }

    it('follows the pages to the end', async () => {
      paged(5, 30)
      const body = (await browser.get('/api/medications')).json()
      assert.equal(body.entry.length, 150)
      assert.equal(new Set(ids(body)).size, 150)
      assert.equal(body.total, 150)
    })

    it('stops at 1000, and says how many there are', async () => {
      paged(12, 100)
      const body = (await browser.get('/api/medications')).json()
      assert.equal(body.entry.length, 1000)
      assert.equal(body.total, 1200)
    })

    it('does not go on for ever', async () => {
      let page = 0
      ehr.script.fhir = () => {
        page += 1
        return bundle([], {
          link: [{ relation: 'next', url: `${ehr.fhirBaseUrl}/MedicationRequest?page=${page}` }],
        })
      }
      assert.equal((await browser.get('/api/medications')).statusCode, 502)
      assert.ok(page <= 200)
    })

    it('does not go round in circles', async () => {
      let pages = 0
      ehr.script.fhir = () => {
        pages += 1
        return bundle([], { link: [{ relation: 'next', url: `${ehr.fhirBaseUrl}/MedicationRequest?again` }] })
      }
      assert.equal((await browser.get('/api/medications')).statusCode, 502)
      assert.equal(pages, 2)
    })

    it('does not follow a page to another host, and gives no half list', async () => {
      const other = await startScriptedEhr()
      try {
        ehr.script.fhir = () =>
          bundle([medication('m1')], {
            link: [{ relation: 'next', url: `${other.fhirBaseUrl}/MedicationRequest?page=2` }],
          })
        assert.equal((await browser.get('/api/medications')).statusCode, 502)
        assert.deepEqual(other.seen, [])
      } finally {
        await other.close()
      }
    })

    it('does not follow a redirect with the token', async () => {
      const other = await startScriptedEhr()
      try {
        ehr.script.fhir = (_url, reply) => reply.redirect(`${other.fhirBaseUrl}/MedicationRequest`)
        assert.equal((await browser.get('/api/medications')).statusCode, 502)
        assert.deepEqual(other.seen, [])
      } finally {
        await other.close()
      }
    })
  })

  describe('GET /api/vitals', () => {
    it('asks for the newest vital signs, and gives them newest first', async () => {
      const body = (await browser.get('/api/vitals')).json()
      assert.deepEqual(ids(body), ['v2', 'v1'])
      const { searchParams } = lastSearch()
      assert.deepEqual(Object.fromEntries(searchParams), {
        patient: 'juniper',
        category: 'vital-signs',
        _sort: '-date',
        _count: '50',
      })
    })

    it('asks for one LOINC code when told', async () => {
      await browser.get('/api/vitals?code=85354-9&_count=5')
      assert.equal(lastSearch().searchParams.get('code'), 'http://loinc.org|85354-9')
      assert.equal(lastSearch().searchParams.get('_count'), '5')
    })

    for (const query of [
      'code=',
      'code=85354',
      'code=a|b',
      'code=85354-9,8480-6',
      'code=85354-9%26x=1',
      '_count=0',
    ])
      it(`refuses ${query}`, async () => {
        assert.equal((await browser.get(`/api/vitals?${query}`)).statusCode, 400)
      })

    it('gives no more than _count, also when the server gives more', async () => {
      const body = (await browser.get('/api/vitals?_count=1')).json()
      assert.equal(body.entry.length, 1)
    })
  })

  describe('GET /api/summary', () => {
    it('holds the same resources as the three addresses give by default', async () => {
      const [summary, patient, conditions, medications] = await Promise.all(
        ['/api/summary', '/api/patient', '/api/conditions', '/api/medications'].map(async path =>
          (await browser.get(path)).json(),
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
      ehr.script.fhir = (url, reply) =>
        url.pathname.endsWith('/Condition')
          ? reply.code(500).send()
          : url.pathname.includes('/Patient/')
            ? PATIENT
            : bundle([])
      const response = await browser.get('/api/summary')
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
      it(`${path} is 403 forbidden without ${needed}, names it, and asks the FHIR server nothing`, async () => {
        const other = await withScope('launch')
        const before = ehr.seen.length
        const response = await other.get(path)
        assert.equal(response.statusCode, 403)
        assert.equal(response.json().issue[0].code, 'forbidden')
        assert.ok(response.json().issue[0].details.text.includes(needed))
        assert.equal(ehr.seen.length, before)
      })

      it(`${path} answers with ${needed} alone`, async () => {
        const other = await withScope(`launch ${needed}`)
        assert.equal((await other.get(path)).statusCode, 200)
      })
    }

    it('are met by wider scopes', async () => {
      const other = await withScope('patient/*.rs')
      assert.equal((await other.get('/api/summary')).statusCode, 200)
    })

    it('of a summary name only what is missing', async () => {
      const other = await withScope('patient/Patient.read user/Condition.rs')
      const text: string = (await other.get('/api/summary')).json().issue[0].details.text
      assert.match(text, /Not granted: patient\/MedicationRequest\.rs$/)
    })
  })

  describe('a FHIR server that does not do its part', () => {
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
        ehr.script.fhir = (_url, reply) => answer(reply)
        const response = await browser.get('/api/patient')
        assert.equal(response.statusCode, status)
        assert.equal(response.json().resourceType, 'OperationOutcome')
        assert.equal(response.json().issue[0].code, code)
      })
    }

    it('is 504 transient when it does not answer in time', async () => {
      ehr.script.fhir = () => new Promise(() => {})
      const impatient = await sessionApp(store, [ehr.fhirBaseUrl], { clock, app: { timeoutSeconds: 0.1 } })
      const cookies = Object.fromEntries(browser.cookies)
      const response = await impatient.inject({ method: 'GET', url: '/api/patient', cookies })
      assert.equal(response.statusCode, 504)
      assert.equal(response.json().issue[0].code, 'transient')
    })

    it('is 502 transient when it is away, and the session lives on', async () => {
      const going = await startScriptedEhr()
      const lonely = await sessionApp(store, [going.fhirBaseUrl], { clock })
      const other = await launched(lonely, going.fhirBaseUrl)
      await going.close()
      const response = await other.get('/api/summary')
      assert.equal(response.statusCode, 502)
      assert.equal(response.json().issue[0].code, 'transient')
      assert.equal((await other.get('/api/session')).statusCode, 200)
    })
  })

  describe('an address that is not there', () => {
    it('is 404 with an OperationOutcome', async () => {
      for (const path of ['/api', '/api/', '/api/nothing', '/api/patient/1']) {
        const response = await browser.get(path)
        assert.equal(response.statusCode, 404, path)
        assert.equal(response.json().resourceType, 'OperationOutcome')
      }
    })
  })

  describe('GET /api/openapi.json', () => {
    it('is an OpenAPI 3.1 document with every address, open to all', async () => {
      const response = await app.inject({ method: 'GET', url: '/api/openapi.json' })
      assert.equal(response.statusCode, 200)
      const document = response.json()
      assert.match(document.openapi, /^3\.1\.\d$/)
      assert.deepEqual(Object.keys(document.paths), [...PATHS])
    })

    it('is true: real answers and errors pass its schemas, and its parameters work as told', async () => {
      const document = (await app.inject({ method: 'GET', url: '/api/openapi.json' })).json()
      const judge = schemaJudge(document)
      for (const path of PATHS) {
        const { responses, parameters } = document.paths[path].get
        await judge(responses[200], await browser.get(path))
        await judge(responses[401], await app.inject({ method: 'GET', url: path }))
        await judge(responses[400], await browser.get(`${path}?nothing=1`))
        await judge(responses[409], await browser.get(path, { 'x-session-id': 'x' }))
        for (const { name, schema } of parameters.filter((one: { in?: string }) => one.in === 'query')) {
          const value = schema.default ?? '85354-9'
          await judge(responses[200], await browser.get(`${path}?${name}=${value}`))
        }
      }
    })

    it('is judged by schemas that can fail', async () => {
      const document = (await app.inject({ method: 'GET', url: '/api/openapi.json' })).json()
      const judge = schemaJudge(document)
      await assert.rejects(
        judge(document.paths['/api/session'].get.responses[200], await browser.get('/api/me')),
      )
    })
  })
})

type R = Parameters<NonNullable<ScriptedEhr['script']['fhir']>>[1]

interface Answered {
  readonly statusCode: number
  readonly headers: Readonly<Record<string, unknown>>
  json(): unknown
}

/** Checks an answer by a response of the document, with the schema validator of fastify (ajv). */
function schemaJudge(document: { components: { schemas: Record<string, object> } }) {
  const judges = new Map<string, FastifyInstance>()
  return async (
    response: { content: Record<string, { schema: object }> },
    answer: Answered,
  ): Promise<void> => {
    const type = String(answer.headers['content-type']).split(';')[0] ?? ''
    const schema = inlined(response.content[type]?.schema ?? { not: {} }, document.components.schemas)
    const judge = judges.get(JSON.stringify(schema)) ?? judgeBy(schema)
    judges.set(JSON.stringify(schema), judge)
    const verdict = await judge.inject({ method: 'POST', url: '/', payload: answer.json() as object })
    assert.equal(verdict.statusCode, 200, `${answer.statusCode}: ${verdict.body}`)
  }
}

function judgeBy(body: object): FastifyInstance {
  const customOptions = { coerceTypes: false, removeAdditional: false, useDefaults: false } as const
  const judge = fastify({ ajv: { customOptions } })
  judge.post('/', { schema: { body } }, async () => 'fits')
  return judge
}

function inlined(schema: object, components: Record<string, object>): object {
  const name = '$ref' in schema ? String(schema.$ref).split('/').at(-1) : undefined
  return name === undefined ? schema : (components[name] ?? {})
}
