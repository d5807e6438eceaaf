import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, it } from 'node:test'
import type { FastifyInstance } from 'fastify'
import { AppBrowser } from '../../../test/support/app-browser.ts'
import { type ScriptedEhr, startScriptedEhr } from '../../../test/support/scripted-ehr.ts'
import { sessionApp, temporaryStore } from '../../../test/support/session-app.ts'
import type { Store } from '../../store/index.ts'

describe('an EHR whose answers are not right', () => {
  let ehr: ScriptedEhr
  let store: Store
  let app: FastifyInstance

  before(async () => {
    store = await temporaryStore()
    ehr = await startScriptedEhr()
  })
  beforeEach(async () => {
    ehr.reset()
    app = await sessionApp(store, [ehr.fhirBaseUrl])
  })
  after(async () => {
    await ehr.close()
    await store.close()
  })

  describe('GET /launch', () => {
    for (const [what, configuration] of [
      ['no token endpoint', { token_endpoint: undefined }],
      ['an authorization endpoint that is no address', { authorization_endpoint: 'http://' }],
      ['an authorization endpoint that is a script', { authorization_endpoint: 'javascript:alert(1)' }],
      ['endpoints of another type', { authorization_endpoint: 7 }],
    ] as const) {
      it(`refuses a configuration with ${what}`, async () => {
        ehr.script.configuration = configuration
        const response = await new AppBrowser(app).begin(ehr.fhirBaseUrl)
        assert.equal(response.statusCode, 502)
        assert.match(response.body, /Patient records cannot be reached/)
      })
    }
  })

  describe('GET /callback', () => {
    for (const [what, change] of [
      ['the iss parameter of another issuer (RFC 9207)', q => q.set('iss', 'https://evil.example')],
      ['no iss parameter where it was promised (RFC 9207)', q => q.delete('iss')],
      ['two iss parameters', q => q.append('iss', 'https://evil.example')],
      ['two codes', q => q.append('code', 'another')],
      ['no code', q => q.delete('code')],
    ] as readonly (readonly [string, (query: URLSearchParams) => void])[]) {
      it(`refuses an address with ${what} as bad input, and asks for no token`, async () => {
        const browser = new AppBrowser(app)
        const address = await browser.visitAuthServer(await browser.begin(ehr.fhirBaseUrl))
        const url = new URL(address, 'http://localhost:8081')
        change(url.searchParams)
        const before = ehr.tokenForms.length
        const response = await browser.get(`${url.pathname}${url.search}`)
        assert.equal(response.statusCode, 400)
        assert.match(response.body, /The sign-in could not be verified/)
        assert.equal(ehr.tokenForms.length, before)
        assert.equal((await browser.get('/api/session')).statusCode, 401)
      })
    }

    for (const [what, script] of [
      ['an id_token with another nonce', { claims: { nonce: 'other' } }],
      ['an id_token without a nonce', { claims: { nonce: undefined } }],
      ['an id_token for another client', { claims: { aud: 'other-app' } }],
      ['an id_token of another issuer', { claims: { iss: 'https://evil.example' } }],
      ['an id_token that has expired', { claims: { exp: 1_000_000 } }],
      ['an id_token signed with another key', { signature: 'other' }],
      ['an unsigned id_token', { signature: 'none' }],
      ['no id_token although openid was granted', { token: { id_token: undefined } }],
      ['a token of another type', { token: { token_type: 'mac' } }],
      ['no access token', { token: { access_token: undefined } }],
      ['a patient that is no FHIR id', { token: { patient: '../Patient/other' } }],
      ['a patient that is a reference', { token: { patient: 'Patient/juniper' } }],
      ['a patient that is a number', { token: { patient: 7 } }],
      ['an encounter that is null', { token: { encounter: null } }],
    ] as const) {
      it(`refuses an answer with ${what}`, async () => {
        Object.assign(ehr.script, script)
        const browser = new AppBrowser(app)
        const response = await browser.launch(ehr.fhirBaseUrl)
        assert.equal(response.statusCode, 502)
        assert.match(response.body, /The sign-in could not be verified/)
        for (const token of ehr.issued) assert.ok(!response.body.includes(token))
        assert.equal((await browser.get('/api/session')).statusCode, 401)
      })
    }
  })
})
