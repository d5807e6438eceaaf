import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { decodeClaims, readRedirect, TestAuthServer } from '../testing/test-auth-server.ts'
import type { TestBrowser } from '../testing/test-browser.ts'
import { openTestStore } from '../testing/test-store.ts'

const STANDALONE = {
  client_id: 'tracker',
  redirect_uri: 'https://tracker.example/callback',
  scope: 'openid fhirUser launch/patient patient/*.rs user/*.rs',
}

describe('a patient who signs in', () => {
  const open = openTestStore()
  let auth: TestAuthServer
  let browser: TestBrowser
  before(async () => {
    auth = await TestAuthServer.open(await open())
    await auth.addClinician('alba', { fhir_user_id: 'Patient/juniper' })
    await auth.addClient({ client_id: 'tracker', scope: STANDALONE.scope, first_party: false })
    browser = await auth.logIn('alba')
  })

  it('opens an app for their own record, without a picker', async () => {
    const asked = await auth.authorize(browser, STANDALONE)
    assert.match(asked.headers.location ?? '', /^\/oauth2\/consent\?/)
    const page = await browser.get(asked.headers.location ?? '')
    assert.match(page.body, />Juniper<\/span>, Alba/)
    assert.match(page.body, /Your name and identity/)
    const form = new URLSearchParams(
      [...page.body.matchAll(/<input type="(?:hidden|checkbox)"[^>]* name="([^"]*)" value="([^"]*)"/g)].map(
        ([, name = '', value = '']) => [name, value],
      ),
    )
    const sent = await browser.post('/oauth2/consent', `${form}&decision=allow`)
    const { code = '' } = readRedirect(sent)
    const { client_id, redirect_uri } = STANDALONE
    const tokens = (await auth.exchange(code, { client_id, redirect_uri })).json()
    assert.equal(tokens.patient, 'juniper')
    for (const token of [tokens.access_token, tokens.id_token])
      assert.equal(decodeClaims(token).fhirUser, 'http://localhost:8080/fhir/Patient/juniper')
  })

  it('reads the FHIR server as that patient', async () => {
    auth.fhir.requests.length = 0
    await browser.get('/manage')
    await browser.get((await auth.authorize(browser, STANDALONE)).headers.location ?? '')
    assert.ok(auth.fhir.requests.length > 0)
    for (const { authorization } of auth.fhir.requests)
      assert.equal(decodeClaims(authorization).fhirUser, 'http://localhost:8080/fhir/Patient/juniper')
  })

  it('is redirected from the pages about all patients', async () => {
    for (const path of ['/portal', '/portal?patient=ashlar', '/portal?search=a'])
      assert.equal((await browser.get(path)).headers.location, '/manage', path)
    const launched = await browser.post('/portal/launch', { patientId: 'juniper' })
    assert.equal(launched.headers.location, '/manage')
    assert.equal((await browser.get('/activity')).statusCode, 403)
    const { body } = await browser.get('/manage')
    assert.doesNotMatch(body, /href="\/portal">Patients|href="\/activity"/)
    assert.match(body, /href="\/account\/sign-ins"/)
  })
})
