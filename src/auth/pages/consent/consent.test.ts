import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { sha256 } from '../../../store/index.ts'
import { clearScopes, readForm } from '../../testing/read-form.ts'
import { decodeClaims, readRedirect, TestAuthServer } from '../../testing/test-auth-server.ts'
import type { TestBrowser } from '../../testing/test-browser.ts'
import { openTestStore } from '../../testing/test-store.ts'

const APP = {
  client_id: 'helio',
  redirect_uri: 'https://helio.example/callback',
  scope: 'launch openid patient/*.rs',
}

const HELIO_SCOPE = 'launch openid fhirUser online_access offline_access patient/*.rs'

describe('/oauth2/consent', () => {
  const open = openTestStore()
  let auth: TestAuthServer
  let mainBrowser: TestBrowser
  before(async () => {
    auth = await TestAuthServer.open(await open())
    await auth.addClient({
      client_id: 'helio',
      name: 'Helio <Trends>',
      scope: HELIO_SCOPE,
      first_party: false,
    })
    await auth.addClient({
      client_id: 'reader',
      scope: 'user/*.rs',
      redirect_uris: JSON.stringify([APP.redirect_uri]),
      first_party: false,
    })
    await auth.addUser('colleague')
    mainBrowser = await auth.logIn()
  })

  async function asked(scope = APP.scope, browser = mainBrowser) {
    const launch = await auth.launch(browser, { clientId: 'helio' })
    const response = await auth.authorize(browser, { ...APP, scope, launch })
    assert.match(response.headers.location ?? '', /^\/oauth2\/consent\?interaction=/)
    const page = await browser.get(response.headers.location ?? '')
    return { page, launch, form: readForm(page.body) }
  }

  function decide(form: URLSearchParams, decision: 'allow' | 'deny', headers = {}) {
    return mainBrowser.post('/oauth2/consent', `${form}&decision=${decision}`, headers)
  }

  it('shows app, host, clinician, patient and requested access, and grants nothing by itself (CONSENT-1)', async () => {
    const { page } = await asked()
    assert.equal(page.statusCode, 200)
    for (const text of [
      'Allow Helio &lt;Trends&gt; to use this record?',
      '>Juniper</span>, Alba',
      '14-Mar-1958',
      'helio.example',
      'Dr. Robin Ahmadi',
      'patient/*.rs',
    ])
      assert.ok(page.body.includes(text), text)
    assert.equal(page.body.match(/<input type="checkbox"(?![^>]* checked)/), null)
    assert.doesNotMatch(page.body, /Sample patients are made up|For developers/)
    assert.match(
      String(page.headers['content-security-policy']),
      /form-action 'self' https:\/\/helio\.example;/,
    )
    assert.equal((await auth.store.db.selectFrom('grant').select('id').execute()).length, 0)
  })

  it('marks an unverified app, and does not show its logo', async () => {
    const other = await TestAuthServer.open(await open())
    const logo_url = 'https://helio.example/logo.png'
    await other.addClient({ client_id: 'helio', first_party: false, approved: false, logo_url })
    const clinician = await other.logIn()
    const launch = await other.launch(clinician, { clientId: 'helio' })
    const response = await other.authorize(clinician, { ...APP, launch })
    const page = await clinician.follow(response, other.settings.issuerUrl)
    assert.match(page.body, /Unverified app\.<\/b> It registered itself/)
    assert.match(page.body, /<b>helio<\/b>&ensp;<span class="badge badge--warn">Unverified</)
    assert.doesNotMatch(page.body, /logo\.png/)
    assert.doesNotMatch((await asked()).page.body, /Unverified/)
  })

  it('says who registered the app, and links to the pages of its maker, unchecked ones as such (CONSENT-7)', async () => {
    const other = await TestAuthServer.open(await open())
    await other.addClient({ client_id: 'helio', first_party: false })
    const browser = await other.logIn()
    const readAbout = async () => {
      const launch = await other.launch(browser, { clientId: 'helio' })
      const { headers } = await other.authorize(browser, { ...APP, launch })
      return (await browser.get(headers.location ?? '')).body
    }
    const bare = await readAbout()
    assert.match(bare, /\. The hospital or practice registered or approved it\./)
    assert.match(bare, /Website of the maker<\/dt><dd>Not stated</)
    assert.match(bare, /Privacy notice<\/dt><dd>Not stated\. Ask the maker/)
    assert.doesNotMatch(bare, /Terms of service|Contact</)
    const stated = {
      website_url: 'https://maker.example/?a=1&b=2',
      policy_url: 'https://maker.example/privacy#data',
      terms_url: 'https://terms.example/',
      contacts: '["help@maker.example","<b>555"]',
      approved: false,
    }
    await other.store.db.updateTable('client').set(stated).where('client_id', '=', 'helio').execute()
    const page = await readAbout()
    assert.match(page, /, by the app itself\. The hospital or practice has not checked it\./)
    const link = (url: string, host: string) =>
      `<a href="${url}" target="_blank" rel="noopener noreferrer">${host}<span class="sr">, in a new tab</span></a> (not checked)`
    assert.ok(page.includes(link('https://maker.example/?a=1&amp;b=2', 'maker.example')))
    assert.ok(page.includes(link('https://maker.example/privacy#data', 'maker.example')))
    assert.ok(page.includes(link('https://terms.example/', 'terms.example')))
    assert.ok(page.includes('help@maker.example, &lt;b&gt;555'))
  })

  it('distinguishes access that was not requested from access for which the app is not registered', async () => {
    const other = await TestAuthServer.open(await open())
    const scope = 'launch openid patient/Patient.rs patient/Observation.rs'
    await other.addClient({ client_id: 'helio', scope, first_party: false })
    const browser = await other.logIn()
    const about = async (asked: string) => {
      const launch = await other.launch(browser, { clientId: 'helio' })
      const { headers } = await other.authorize(browser, { ...APP, scope: asked, launch })
      const { body } = await browser.get(headers.location ?? '')
      assert.equal(
        body.includes('The app requested it but is not registered for it: its'),
        /offline/.test(asked),
      )
      assert.equal(body.includes('The app did not request it: its'), !/offline/.test(asked))
      return (/<dl class="kv">([\s\S]*?)<\/dl>/.exec(body)?.[1] ?? '').replace(/<[^>]+>/g, ' ')
    }
    const more = await about(
      `${scope} patient/Condition.rs patient/Immunization.rs system/Goal.rs offline_access`,
    )
    assert.match(more, /Requested but not registered for\s+Conditions, vaccinations\s/)
    assert.match(more, /Not requested\s+Medicines prescribed, allergies, procedures/)
    const all = await about('launch openid patient/*.rs')
    assert.match(all, /Requested but not registered for\s+Everything else in the record\s/)
    assert.doesNotMatch(all, /Not requested/)
    assert.doesNotMatch(await about(scope), /not registered/)
  })

  it('issues one code after approval', async () => {
    const { form } = await asked()
    const allowed = readRedirect(await decide(form, 'allow'))
    const body = (await auth.exchange(allowed.code ?? '', APP)).json()
    assert.equal(body.scope, APP.scope)
    assert.equal((await decide(form, 'allow')).statusCode, 400)
  })

  it('responds with access_denied after a refusal, and does not consume the launch token (CONSENT-1)', async () => {
    const { form, launch } = await asked()
    const denied = readRedirect(await decide(form, 'deny'))
    assert.equal(denied.error, 'access_denied')
    assert.equal(denied.state, 'state-1')
    const token = auth.store.db.selectFrom('launch_token').select('used_at')
    const { used_at } = await token.where('token_hash', '=', sha256(launch)).executeTakeFirstOrThrow()
    assert.equal(used_at, null)
    assert.equal((await decide(form, 'allow')).statusCode, 400)
  })

  it('asks again with the same choices if the form contains no decision', async () => {
    const { form } = await asked()
    const left = clearScopes(form, 'patient/*.rs')
    const again = await mainBrowser.post('/oauth2/consent', left.toString())
    assert.equal(again.statusCode, 200)
    assert.deepEqual([...readForm(again.body)], [...left])
  })

  it('refuses the decision of another clinician (CONSENT-4)', async () => {
    const response = await auth.authorize(mainBrowser, { ...APP, scope: 'openid' })
    const page = await mainBrowser.get(response.headers.location ?? '')
    const clinician = /name="clinician" value="([^"]*)"/.exec(page.body)?.[1] ?? ''
    const { interaction = '' } = readRedirect(response)
    const colleague = await auth.logIn('colleague')
    const shown = await colleague.post('/oauth2/consent', { interaction, clinician, decision: 'allow' })
    assert.equal(shown.statusCode, 200)
    assert.match(shown.body, /Dr\. colleague/)
  })

  it('refuses a decision that another site sends', async () => {
    const { form } = await asked()
    const headers = { 'sec-fetch-site': 'cross-site' }
    const response = await decide(form, 'allow', headers)
    assert.equal(response.statusCode, 403)
  })

  it('redirects to the login page without a login', async () => {
    const { form } = await asked()
    const response = await auth.openBrowser().post('/oauth2/consent', `${form}&decision=allow`)
    assert.match(response.headers.location ?? '', /^\/login\?interaction=/)
  })

  it('asks for a first-party app too if it requests consent', async () => {
    const response = await auth.authorize(mainBrowser, { prompt: 'consent' })
    assert.match(response.headers.location ?? '', /^\/oauth2\/consent\?interaction=/)
  })

  describe('grants exactly the approved scopes', () => {
    const CATEGORY = 'http://terminology.hl7.org/CodeSystem/observation-category'
    const granted = async (scope: string, ...unticked: readonly string[]) => {
      const { form } = await asked(scope)
      const { code = '' } = readRedirect(await decide(clearScopes(form, ...unticked), 'allow'))
      const body = (await auth.exchange(code, APP)).json()
      assert.equal(decodeClaims(body.access_token).scope, body.scope)
      return body
    }

    it('leaves out a type that was cleared', async () => {
      const body = await granted('launch patient/Patient.rs patient/Condition.rs', 'patient/Condition.rs')
      assert.equal(body.scope, 'launch patient/Patient.rs')
    })

    it('leaves out a category that was cleared, although the app requested the whole type (CONSENT-2)', async () => {
      const categories = ['social-history', 'survey'].map(code => `${CATEGORY}|${code}`)
      const { scope } = await granted(
        'launch patient/Observation.rs',
        ...categories.map(token => `patient/Observation.rs?category=${token}`),
      )
      assert.match(scope, /^launch patient\/Observation\.rs\?category=/)
      assert.ok(scope.includes(`${CATEGORY}|laboratory`))
      for (const token of categories) assert.ok(!scope.includes(token))
    })

    it('issues no refresh token if offline access was cleared (CONSENT-2)', async () => {
      const asking = 'launch offline_access patient/Patient.rs'
      assert.ok((await granted(asking)).refresh_token)
      const body = await granted(asking, 'offline_access')
      assert.equal(body.scope, 'launch patient/Patient.rs')
      assert.equal(body.refresh_token, undefined)
    })

    it('ignores scopes that the form adds', async () => {
      const { form } = await asked('launch patient/Patient.rs')
      form.append('scope', 'patient/*.rs')
      form.append('scope', 'offline_access')
      const { code = '' } = readRedirect(await decide(form, 'allow'))
      assert.equal((await auth.exchange(code, APP)).json().scope, 'launch patient/Patient.rs')
    })

    it('asks again if nothing was selected, and grants nothing', async () => {
      const response = await auth.authorize(mainBrowser, {
        ...APP,
        client_id: 'reader',
        scope: 'user/Patient.rs',
      })
      const form = readForm((await mainBrowser.get(response.headers.location ?? '')).body)
      const nothing = await decide(clearScopes(form, 'user/Patient.rs'), 'allow')
      assert.equal(nothing.statusCode, 400)
      assert.match(nothing.body, /Nothing is selected\.[\s\S]*choose “Don’t allow”/)
      assert.equal(readRedirect(await decide(readForm(nothing.body), 'deny')).error, 'access_denied')
    })
  })

  it('explains offline access, and when access ends without it', async () => {
    const { page } = await asked('launch online_access offline_access patient/Patient.rs')
    assert.match(page.body, /Keep access[\s\S]*while you are signed out, until you end it/)
    assert.match(page.body, /ends when you sign out, and at <time [^>]*>\d\d:\d\d \S+<\/time> at the latest/)
    const other = await asked('launch patient/Patient.rs')
    assert.match(other.page.body, /its access ends after 5 minutes/)
  })

  it('shows "Read and search" for r, marks writes, and explains that a wildcard includes future kinds', async () => {
    const { page } = await asked('launch patient/*.r')
    assert.match(page.body, /<h2[^>]*>Read and search<\/h2>/)
    assert.match(page.body, /including kinds that are added later/)
    await auth.store.db
      .updateTable('client')
      .set({ scope: 'patient/*.cruds' })
      .where('client_id', '=', 'helio')
      .execute()
    const writing = await asked('launch patient/Observation.cu')
    assert.match(writing.page.body, /Add and change measurements[\s\S]*Writes to the record/)
    await auth.store.db
      .updateTable('client')
      .set({ scope: HELIO_SCOPE })
      .where('client_id', '=', 'helio')
      .execute()
  })

  it('shows logo and description of the app, and allows only that image', async () => {
    const logo_url = 'https://cdn.helio.example/logo;a.png?v=1'
    const set = (values: { logo_url: string | null; description: string | null }) =>
      auth.store.db.updateTable('client').set(values).where('client_id', '=', 'helio').execute()
    await set({ logo_url, description: 'Draws <trends>.' })
    const { page } = await asked()
    await set({ logo_url: null, description: null })
    assert.ok(page.body.includes(`src="${logo_url}" alt=""`))
    assert.ok(page.body.includes('Draws &lt;trends&gt;.'))
    assert.match(
      String(page.headers['content-security-policy']),
      /img-src 'self' data: https:\/\/cdn\.helio\.example\/logo%3Ba\.png;/,
    )
  })

  it("shows that the patient's name is unavailable", async () => {
    const launch = await auth.launch(mainBrowser, { clientId: 'helio' })
    const response = await auth.authorize(mainBrowser, { ...APP, launch })
    auth.fhir.fail('no-response')
    const page = await mainBrowser.get(response.headers.location ?? '')
    auth.fhir.fail(undefined)
    assert.match(page.body, /Name temporarily unavailable[\s\S]*juniper/)
  })
})
