import assert from 'node:assert/strict'
import { Writable } from 'node:stream'
import { describe, it } from 'node:test'
import { createLogger } from '../web/index.ts'
import { readAnswer, TestAuthServer } from './testing/test-auth-server.ts'
import { openTestStore } from './testing/test-store.ts'

describe('authServer', () => {
  const open = openTestStore()

  it('is ready with its database and signing key, and says what is missing', async () => {
    const house = await TestAuthServer.open(await open())
    const ready = await house.visitor().get('/readyz')
    assert.equal(ready.statusCode, 200)
    assert.deepEqual(
      ready.json().checks.map((check: { name: string }) => check.name),
      ['database', 'signing key'],
    )
    await house.store.db.deleteFrom('signing_key').execute()
    const { createAuthServer } = await import('./server.ts')
    const { createSealer } = await import('../store/index.ts')
    const bare = await createAuthServer({
      settings: house.settings,
      store: house.store,
      sealer: createSealer('x'),
    })
    const missing = await bare.inject('/readyz')
    assert.equal(missing.statusCode, 503)
    assert.match(missing.body, /there is no signing key/)
  })

  it('answers the root with the portal, unknown addresses with 404, wrong methods with 405', async () => {
    const house = await TestAuthServer.open(await open())
    const visitor = house.visitor()
    assert.equal((await visitor.get('/')).headers.location, '/portal')
    assert.equal((await visitor.get('/nothing')).statusCode, 404)
    const wrong = await visitor.post('/portal', {})
    assert.equal(wrong.statusCode, 405)
    assert.equal(wrong.headers.allow, 'GET, HEAD')
    const token = await visitor.get('/oauth2/token')
    assert.equal(token.statusCode, 405)
    assert.equal(token.json().error, 'invalid_request')
  })

  it('keeps pages out of caches and frames, and answers too large forms with 413', async () => {
    const house = await TestAuthServer.open(await open())
    const visitor = await house.loggedIn()
    for (const path of ['/login', '/portal', '/portal?patient=juniper', '/logout', '/oauth2/resume']) {
      const { headers } = await visitor.get(path)
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
    assert.equal((await visitor.post('/login', large)).statusCode, 413)
  })

  it('logs no token, code, password or patient name', async () => {
    const lines: string[] = []
    const destination = new Writable({
      write(chunk, _encoding, done) {
        lines.push(String(chunk))
        done()
      },
    })
    const house = await TestAuthServer.open(await open(), {
      logger: createLogger({ level: 'trace', destination }),
    })
    const visitor = await house.loggedIn()
    await visitor.login('clinician', 'a-wrong-password')
    await visitor.get('/portal?search=Juniper&patient=juniper')
    const launch = await house.launch(visitor)
    const { code = '' } = readAnswer(await house.authorize(visitor, { launch }))
    await house.authorize(visitor, { launch })
    const body = (await house.exchange(code)).json()
    await house.exchange(code)
    await house.refresh(body.refresh_token)
    await house.token({ grant_type: 'refresh_token', client_id: 'sallyport-app', client_secret: 'a-secret' })
    const log = lines.join('')
    assert.match(log, /Clinician logged in/)
    assert.match(log, /launch token used before/)
    const secrets = [
      launch,
      code,
      body.access_token,
      body.refresh_token,
      body.id_token,
      ...visitor.cookies.values(),
    ]
    for (const secret of [...secrets, 'sallyport"', 'a-wrong-password', 'a-secret', 'Juniper', 'Alba'])
      assert.equal(log.includes(secret), false, secret)
  })
})
