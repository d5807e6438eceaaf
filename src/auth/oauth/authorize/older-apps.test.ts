import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { readRedirect, TestAuthServer, VERIFIER } from '../../testing/test-auth-server.ts'
import type { TestBrowser } from '../../testing/test-browser.ts'
import { openTestStore } from '../../testing/test-store.ts'

describe('GET /oauth2/authorize of older and native apps', () => {
  const open = openTestStore()
  let auth: TestAuthServer
  let mainBrowser: TestBrowser
  before(async () => {
    auth = await TestAuthServer.open(await open())
    await auth.addClient({ client_id: 'old', pkce_required: false })
    mainBrowser = await auth.logIn()
  })
  const OLD = { client_id: 'old', redirect_uri: 'https://old.example/callback' }
  const WITHOUT_PKCE = { ...OLD, code_challenge: undefined, code_challenge_method: undefined }
  const codeOf = async (different: Record<string, string | undefined>) =>
    readRedirect(await auth.authorize(mainBrowser, { scope: 'openid', ...different })).code ?? ''

  describe('with optional PKCE', () => {
    it('accepts a request without a challenge, and its code without a verifier (AUTHORIZE-4)', async () => {
      const form = { grant_type: 'authorization_code', ...OLD, code: await codeOf(WITHOUT_PKCE) }
      // RFC 9700, 4.8.2: a verifier without a challenge is a downgrade.
      const downgraded = await auth.requestToken({ ...form, code_verifier: VERIFIER })
      assert.equal(downgraded.json().error, 'invalid_grant')
      assert.equal((await auth.requestToken(form)).statusCode, 200)
    })

    it('verifies a challenge that is present (AUTHORIZE-4)', async () => {
      const form = { grant_type: 'authorization_code', ...OLD, code: await codeOf(OLD) }
      const forgotten = await auth.requestToken(form)
      assert.equal(forgotten.json().error, 'invalid_grant')
      const wrong = await auth.requestToken({ ...form, code_verifier: 'x'.repeat(43) })
      assert.equal(wrong.json().error, 'invalid_grant')
      assert.equal((await auth.requestToken({ ...form, code_verifier: VERIFIER })).statusCode, 200)
      for (const different of [
        { code_challenge_method: 'plain' },
        { code_challenge_method: undefined },
        { code_challenge: undefined },
        { code_challenge: 'short' },
      ])
        assert.equal(
          readRedirect(await auth.authorize(mainBrowser, { ...OLD, ...different })).error,
          'invalid_request',
        )
    })

    it('refuses a code without a challenge after the registration requires PKCE', async () => {
      const code = await codeOf(WITHOUT_PKCE)
      const require = (pkce_required: boolean) =>
        auth.store.db.updateTable('client').set({ pkce_required }).where('client_id', '=', 'old').execute()
      await require(true)
      const refused = await auth.requestToken({ grant_type: 'authorization_code', ...OLD, code })
      assert.equal(refused.json().error, 'invalid_request')
      await require(false)
    })
  })

  it('grants the registered scopes if scope is omitted, in a launch too (AUTHORIZE-8)', async () => {
    const scopeOf = async (different: Record<string, string | undefined>) => {
      const { code = '' } = readRedirect(
        await auth.authorize(mainBrowser, { ...OLD, scope: undefined, ...different }),
      )
      return (await auth.exchange(code, OLD)).json().scope
    }
    assert.equal(await scopeOf({}), 'openid fhirUser offline_access')
    const launch = await auth.launch(mainBrowser, { clientId: 'old' })
    assert.equal(await scopeOf({ launch }), 'launch openid fhirUser offline_access patient/*.rs')
    await auth.addClient({ client_id: 'plain', scope: 'openid patient/Patient.rs' })
    const plain = { client_id: 'plain', redirect_uri: 'https://plain.example/callback' }
    const launched = await auth.launch(mainBrowser, { clientId: 'plain' })
    const different = { ...plain, launch: launched, scope: undefined }
    const { code = '' } = readRedirect(await auth.authorize(mainBrowser, different))
    assert.equal((await auth.exchange(code, plain)).json().scope, 'openid patient/Patient.rs launch')
  })

  it('omits iss if the client opted out, in errors too (AUTHORIZE-1)', async () => {
    await auth.addClient({ client_id: 'new-tab', iss_parameter: false })
    const client = { client_id: 'new-tab', redirect_uri: 'https://new-tab.example/callback' }
    const [done, failed] = [
      readRedirect(await auth.authorize(mainBrowser, { ...client, scope: 'openid' })),
      readRedirect(await auth.authorize(mainBrowser, { ...client, aud: 'https://other.example' })),
    ]
    assert.ok(done.code)
    assert.equal(failed.error, 'invalid_request')
    assert.deepEqual([done.iss, failed.iss], [undefined, undefined])
    const silent = readRedirect(
      await auth.authorize(auth.openBrowser(), { ...client, scope: 'openid', prompt: 'none' }),
    )
    assert.deepEqual([silent.error, silent.iss], ['login_required', undefined])
    assert.equal(
      readRedirect(await auth.authorize(mainBrowser, { ...OLD, scope: 'openid' })).iss,
      'http://localhost:9000',
    )
  })

  // RFC 8252, 7.3.
  describe('with a loopback redirect URI', () => {
    const registered = ['http://127.0.0.1/cb?x=1', 'http://[::1]:7000/cb', 'http://localhost:7000/cb']
    before(async () => {
      for (const [client_id, more] of [
        ['native', {}],
        ['native-old', { pkce_required: false }],
        ['web', { auth_method: 'client_secret', secret_hash: 'x' }],
      ] as const)
        await auth.addClient({ client_id, redirect_uris: JSON.stringify(registered), ...more })
    })
    const ask = async (redirect_uri: string, client_id = 'native') =>
      auth.authorize(mainBrowser, { client_id, redirect_uri, scope: 'openid' })

    it('accepts every port at an IP literal, and redirects there (AUTHORIZE-2)', async () => {
      for (const redirect_uri of [
        'http://127.0.0.1/cb?x=1',
        'http://127.0.0.1:51004/cb?x=1',
        'http://[::1]/cb',
        'http://[::1]:61023/cb',
        'http://localhost:7000/cb',
      ]) {
        const response = await ask(redirect_uri)
        assert.ok(response.headers.location?.startsWith(redirect_uri), redirect_uri)
        const { code = '' } = readRedirect(response)
        const exchanged = await auth.exchange(code, { client_id: 'native', redirect_uri })
        assert.equal(exchanged.statusCode, 200, redirect_uri)
      }
      const { code = '' } = readRedirect(await ask('http://127.0.0.1:51004/cb?x=1'))
      const other = { client_id: 'native', redirect_uri: 'http://127.0.0.1:51005/cb?x=1' }
      assert.equal((await auth.exchange(code, other)).json().error, 'invalid_grant')
    })

    it('keeps a port that differs from the registered one across the login page', async () => {
      const browser = auth.openBrowser()
      const redirect_uri = 'http://127.0.0.1:51004/cb?x=1'
      const different = { client_id: 'native', redirect_uri, scope: 'openid' }
      const { interaction = '' } = readRedirect(await auth.authorize(browser, different))
      const done = await browser.post('/login', { username: 'clinician', password: 'sallyport', interaction })
      const answer = await browser.follow(done, auth.settings.issuerUrl)
      assert.ok(answer.headers.location?.startsWith(`${redirect_uri}&code=`))
    })

    it('accepts no other difference from the registered URI', async () => {
      for (const [redirect_uri, client] of [
        ['http://localhost:7001/cb', 'native'],
        ['http://127.0.0.1:51004/cb', 'native'],
        ['http://127.0.0.1:51004/cb?x=1#y', 'native'],
        ['http://127.0.0.1:51004/other?x=1', 'native'],
        ['http://127.0.0.1:51004@evil.example/cb?x=1', 'native'],
        ['http://u@127.0.0.1:51004/cb?x=1', 'native'],
        ['http://127.0.0.1:99999/cb?x=1', 'native'],
        ['http://127.0.0.1:0x50/cb?x=1', 'native'],
        ['http://127.0.0.2:51004/cb?x=1', 'native'],
        ['http://2130706433:51004/cb?x=1', 'native'],
        ['https://127.0.0.1:51004/cb?x=1', 'native'],
        ['http://127.0.0.1:51004/cb?x=1', 'native-old'],
        ['http://127.0.0.1:51004/cb?x=1', 'web'],
      ] as const) {
        const response = await ask(redirect_uri, client)
        assert.deepEqual([response.statusCode, response.headers.location], [400, undefined], redirect_uri)
      }
    })
  })
})
