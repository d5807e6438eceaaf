import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import type { FastifyInstance, LightMyRequestResponse } from 'fastify'
import type { AppReason } from '../src/app-reasons/index.ts'
import { createAuditor } from '../src/audit/index.ts'
import { explainReason } from '../src/auth/words/explanation.ts'
import { PENDING_LAUNCHES_PER_NETWORK } from '../src/session/limits.ts'
import { AppBrowser } from './support/app-browser.ts'
import { launchBrowser, type SessionAppSetup, sessionApp, useSessionApp } from './support/session-app.ts'

interface World {
  readonly setup: SessionAppSetup
  readonly app: FastifyInstance
  /** An app that waits only a millisecond for other servers. */
  readonly hurried: FastifyInstance
}

type Way = (world: World) => Promise<LightMyRequestResponse>

const get =
  (url: string): Way =>
  ({ app }) =>
    new AppBrowser(app).get(url)

/** A launch, after a change of the EHR. */
const launch =
  (change: (setup: SessionAppSetup) => void): Way =>
  async ({ app, setup }) => {
    const browser = new AppBrowser(app)
    const begun = await browser.begin(setup.ehr.fhirBaseUrl)
    change(setup)
    return browser.get(await browser.visitAuthServer(begun))
  }

/** A request of a session to the API, after a change of the EHR. */
const ask =
  (path: string, change: (setup: SessionAppSetup) => void = () => {}): Way =>
  async ({ app, setup }) => {
    const browser = await launchBrowser(app, setup.ehr.fhirBaseUrl)
    change(setup)
    return browser.get(path)
  }

const answer =
  (status: number): ((setup: SessionAppSetup) => void) =>
  ({ ehr }) => {
    ehr.script.fhir = (_url, reply) => reply.code(status).send({})
  }

/** The access token is no longer accepted, and the token endpoint answers with a status. */
const refuseRefresh =
  (status: number): ((setup: SessionAppSetup) => void) =>
  ({ ehr }) => {
    ehr.expireAccessTokens()
    ehr.script.tokenEndpoint = (_form, reply) => reply.code(status).send({ error: 'invalid_grant' })
  }

/** The compiler finds a reason that is not here. */
const WAYS: Readonly<Record<AppReason, Way>> = {
  'link-parameter-missing': get('/launch?iss=x'),
  'link-parameter-too-long': get(`/launch?iss=x&launch=${'x'.repeat(100_000)}`),
  'issuer-not-accepted': get('/launch?iss=https://other.example&launch=x'),
  // A browser keeps a launch itself if too many are pending, unless it is too long for a cookie.
  'too-many-launches': async ({ setup }) => {
    const { db } = setup.store
    await db.deleteFrom('app_launch').execute()
    const browser = new AppBrowser(await open(setup, { app: { frameOrigins: ['https://ehr.example'] } }))
    await browser.begin(setup.ehr.fhirBaseUrl)
    const row = await db.selectFrom('app_launch').selectAll().executeTakeFirstOrThrow()
    for (let at = 0; at < PENDING_LAUNCHES_PER_NETWORK; at += 100) {
      const rows = Array.from({ length: 100 }, (_, more) => ({ ...row, state_hash: `${at + more}` }))
      await db.insertInto('app_launch').values(rows).execute()
    }
    const inFrame = { 'sec-fetch-dest': 'iframe', 'sec-fetch-site': 'cross-site' }
    const url = `/launch?iss=${encodeURIComponent(setup.ehr.fhirBaseUrl)}&launch=${'x'.repeat(1_000)}`
    const tested = await browser.get(url, inFrame)
    const response =
      tested.statusCode === 302 ? await browser.get(String(tested.headers.location), inFrame) : tested
    await db.deleteFrom('app_launch').execute()
    return response
  },
  'state-missing-in-callback': get('/callback'),
  'launch-cookie-missing': get('/callback?state=x'),
  'state-unknown': async ({ app, setup }) => {
    const browser = new AppBrowser(app)
    const url = await browser.visitAuthServer(await browser.begin(setup.ehr.fhirBaseUrl))
    const cookies = new Map(browser.cookies)
    await browser.get(url)
    for (const [name, value] of cookies) browser.cookies.set(name, value)
    return browser.get(url)
  },
  'callback-malformed': async ({ app, setup }) => {
    const browser = new AppBrowser(app)
    const url = await browser.visitAuthServer(await browser.begin(setup.ehr.fhirBaseUrl))
    return browser.get(`${url}&iss=https://other.example`)
  },
  'auth-server-refused': launch(({ ehr }) => {
    ehr.script.callback = { error: 'access_denied', code: undefined }
  }),
  'sign-in-unverified': launch(({ ehr }) => {
    ehr.script.claims = { nonce: 'x' }
  }),
  'auth-server-changed': async ({ app, setup }) => {
    const browser = new AppBrowser(app)
    const url = await browser.visitAuthServer(await browser.begin(setup.ehr.fhirBaseUrl))
    await setup.store.db.updateTable('app_launch').set({ issuer: 'http://localhost:1' }).execute()
    return browser.get(url)
  },
  'no-patient-in-response': launch(({ ehr }) => {
    ehr.script.token = { patient: undefined }
  }),
  'no-session': get('/api/patient'),
  'session-ended': ask('/api/patient', setup => setup.clock.advance(10 * 24 * 3_600_000)),
  'another-session': async ({ app, setup }) => {
    const browser = await launchBrowser(app, setup.ehr.fhirBaseUrl)
    await launchBrowser(app, setup.ehr.fhirBaseUrl)
    return browser.get('/api/patient', { 'x-session-id': '00000000-0000-4000-8000-000000000000' })
  },
  'several-sessions': async ({ app, setup }) => {
    const browser = await launchBrowser(app, setup.ehr.fhirBaseUrl)
    await browser.launch(setup.ehr.fhirBaseUrl)
    return browser.get('/api/patient')
  },
  'scope-not-granted': async ({ app, setup }) => {
    setup.ehr.script.token = { scope: 'launch openid fhirUser patient/Condition.rs' }
    return (await launchBrowser(app, setup.ehr.fhirBaseUrl)).get('/api/patient')
  },
  'parameter-not-usable': ask('/api/patient?x=1'),
  'token-refused': async ({ app, setup }) => {
    setup.ehr.script.token = { refresh_token: undefined }
    const browser = await launchBrowser(app, setup.ehr.fhirBaseUrl)
    setup.ehr.expireAccessTokens()
    return browser.get('/api/patient')
  },
  'access-refused': ask('/api/patient', answer(403)),
  'record-not-found': ask('/api/patient', answer(404)),
  'records-unreachable': ask('/api/patient', answer(500)),
  'records-slow': ask('/api/patient', answer(504)),
  'records-response-invalid': ask('/api/patient', answer(418)),
  'auth-server-unreachable': ask('/api/patient', refuseRefresh(503)),
  'auth-server-slow': async ({ hurried, setup }) => {
    const browser = new AppBrowser(hurried)
    const url = await browser.visitAuthServer(await browser.begin(setup.ehr.fhirBaseUrl))
    setup.ehr.script.tokenEndpoint = () => new Promise(() => {})
    return browser.get(url)
  },
}

function open(setup: SessionAppSetup, more: Parameters<typeof sessionApp>[2] = {}): Promise<FastifyInstance> {
  const audit = createAuditor({ store: setup.store })
  return sessionApp(setup.store, [setup.ehr.fhirBaseUrl], { clock: setup.clock, audit, ...more })
}

describe('the reasons of the app server', () => {
  const setup = useSessionApp()
  let hurried: FastifyInstance
  before(async () => {
    hurried = await open(setup, { app: { timeoutSeconds: 1 } })
  })

  for (const [reason, happen] of Object.entries(WAYS))
    it(`${reason} happens, and is explained (ACTIVITY-4)`, async () => {
      const response = await happen({ setup, app: await open(setup), hurried })
      const rows = await (await setup.store.trail.read())
        .selectFrom('audit_event')
        .select('details')
        .where('request_id', '=', String(response.headers['x-request-id']))
        .execute()
      const found = rows.map(({ details }) => JSON.parse(details ?? '{}')).find(details => details.reason)
      assert.equal(found?.reason, reason)
      const explained = explainReason(found)
      assert(explained)
      assert.doesNotMatch(`${explained.cause} ${explained.action}`, /[{}…]|undefined/)
    })
})
