import assert from 'node:assert/strict'
import { Writable } from 'node:stream'
import { describe, it } from 'node:test'
import { createLogger } from '../web/http/index.ts'
import { readRedirect, TestAuthServer } from './testing/test-auth-server.ts'
import { openTestStore } from './testing/test-store.ts'

describe('createAuthServer', () => {
  const open = openTestStore()

  it('is ready with its database and signing key, and reports a missing one (START-4)', async () => {
    const auth = await TestAuthServer.open(await open())
    const ready = await auth.openBrowser().get('/readyz')
    assert.equal(ready.statusCode, 200)
    assert.deepEqual(
      ready.json().checks.map((check: { name: string }) => check.name),
      ['database', 'signing key'],
    )
    await auth.store.db.deleteFrom('signing_key').execute()
    const { createAuthServer } = await import('./server.ts')
    const { createSealer } = await import('../store/index.ts')
    const bare = await createAuthServer({
      settings: auth.settings,
      store: auth.store,
      sealer: createSealer('x'),
    })
    const missing = await bare.inject('/readyz')
    assert.equal(missing.statusCode, 503)
    assert.match(missing.body, /there is no signing key/)
  })

  it('redirects the root to the portal, and sends 404 for unknown paths and 405 for wrong methods', async () => {
    const auth = await TestAuthServer.open(await open())
    const browser = auth.openBrowser()
    assert.equal((await browser.get('/')).headers.location, '/portal')
    assert.equal((await browser.get('/nothing')).statusCode, 404)
    const wrong = await browser.post('/portal', {})
    assert.equal(wrong.statusCode, 405)
    assert.equal(wrong.headers.allow, 'GET, HEAD')
    const token = await browser.get('/oauth2/token')
    assert.equal(token.statusCode, 405)
    assert.equal(token.json().error, 'invalid_request')
  })

  it('forbids caching and framing of pages, and sends 413 to a form that is too large', async () => {
    const auth = await TestAuthServer.open(await open())
    const browser = await auth.logIn()
    for (const path of ['/login', '/portal', '/portal?patient=juniper', '/logout', '/oauth2/resume']) {
      const { headers } = await browser.get(path)
      assert.equal(headers['cache-control'], 'no-store', path)
      assert.match(
        String(headers['content-security-policy']),
        /^frame-ancestors 'none'; default-src 'none'/,
        path,
      )
      assert.equal(headers['referrer-policy'], 'same-origin', path)
      assert.equal(headers['x-frame-options'], 'DENY', path)
    }
    const large = { username: 'x', password: 'y'.repeat(70_000) }
    assert.equal((await browser.post('/login', large)).statusCode, 413)
  })

  it('logs no token, code, password or patient name (HTTP-7)', async () => {
    const lines: string[] = []
    const destination = new Writable({
      write(chunk, _encoding, done) {
        lines.push(String(chunk))
        done()
      },
    })
    const auth = await TestAuthServer.open(await open(), {
      logger: createLogger({ level: 'trace', destination }),
    })
    const browser = await auth.logIn()
    await browser.login('clinician', 'a-wrong-password')
    await browser.get('/portal?search=Juniper&patient=juniper')
    const launch = await auth.launch(browser)
    const { code = '' } = readRedirect(await auth.authorize(browser, { launch }))
    await auth.authorize(browser, { launch })
    const body = (await auth.exchange(code)).json()
    await auth.exchange(code)
    await auth.refresh(body.refresh_token)
    await auth.requestToken({
      grant_type: 'refresh_token',
      client_id: 'sallyport-app',
      client_secret: 'a-secret',
    })
    const log = lines.join('')
    assert.match(log, /User logged in/)
    assert.match(log, /launch token used before/)
    const secrets = [
      launch,
      code,
      body.access_token,
      body.refresh_token,
      body.id_token,
      ...browser.cookies.values(),
    ]
    for (const secret of [...secrets, 'sallyport"', 'a-wrong-password', 'a-secret', 'Juniper', 'Alba'])
      assert.equal(log.includes(secret), false, secret)
  })
})
