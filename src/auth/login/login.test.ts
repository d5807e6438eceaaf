import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { hash } from '@node-rs/bcrypt'
import { sql } from 'kysely'
import { eachDatabase } from '../../../test/support/databases.ts'
import { AuthHouse } from '../testing/auth-house.ts'
import { oneStore } from '../testing/one-store.ts'

const WRONG = 'The username or password is not right. Check both and try again.'

eachDatabase((_name, open) => {
  describe('POST /login', () => {
    let house: AuthHouse
    before(async () => {
      house = await AuthHouse.open(await open())
    })

    it('sends a clinician to the portal with a cookie for this server', async () => {
      const response = await house.visitor().login()
      assert.equal(response.statusCode, 302)
      assert.equal(response.headers.location, '/portal')
      const [cookie] = response.cookies
      assert.match(cookie?.value ?? '', /^[\w-]{43}$/)
      assert.deepEqual(
        { ...cookie, value: '' },
        { name: 'sallyport-login', value: '', path: '/', httpOnly: true, sameSite: 'Lax', priority: 'High' },
      )
    })

    it('does not tell a wrong username from a wrong password', async () => {
      const visitor = house.visitor()
      const password = await visitor.login('clinician', 'wrong')
      const username = await visitor.login('nobody', 'sallyport')
      for (const response of [password, username]) {
        assert.equal(response.statusCode, 401)
        assert.ok(response.body.includes(WRONG))
        assert.equal(response.cookies.length, 0)
      }
      assert.match(password.body, /<input[^>]* name="password"[^>]* autofocus>/)
      const plain = (body: string) => body.replace(/value="(clinician|nobody)"/, '')
      assert.equal(plain(password.body), plain(username.body))
    })

    it('refuses empty, missing, repeated and unreadable fields like wrong ones', async () => {
      for (const form of [
        'username=&password=',
        '',
        'username=clinician&username=clinician&password=sallyport',
        'username=clini%00cian&password=sallyport',
        'username=clinician&password=sallyport%00',
      ])
        assert.equal((await house.visitor().post('/login', form)).statusCode, 401, form)
    })

    it('gives each login an id of its own, and ends the one before', async () => {
      const visitor = house.visitor()
      visitor.cookies.set('sallyport-login', 'planted-by-someone-else')
      await visitor.login()
      const first = visitor.cookies.get('sallyport-login') ?? ''
      assert.notEqual(first, 'planted-by-someone-else')
      await visitor.login()
      assert.notEqual(visitor.cookies.get('sallyport-login'), first)
      const old = house.visitor()
      old.cookies.set('sallyport-login', first)
      assert.equal((await old.get('/portal')).headers.location, '/login')
    })

    it('lasts 8 hours', async () => {
      const visitor = await house.loggedIn()
      house.time.now += 8 * 3_600_000 - 1
      assert.equal((await visitor.get('/portal')).statusCode, 200)
      house.time.now += 1
      assert.equal((await visitor.get('/portal')).headers.location, '/login')
    })

    it('lets a clinician in who was added by one SQL line, with $2a$, $2b$ and $2y$ hashes', async () => {
      for (const prefix of ['$2a$', '$2b$', '$2y$']) {
        const username = `plain ${prefix}`
        const made = (await hash('correct horse', 4)).replace(/^\$2b\$/, prefix)
        await sql`INSERT INTO clinician (username, password_hash, display_name, fhir_user_id) VALUES (${username}, ${made}, 'Dr. Plain', 'p-9')`.execute(
          house.store.db,
        )
        assert.equal(
          (await house.visitor().login(username, 'correct horse')).headers.location,
          '/portal',
          prefix,
        )
        assert.equal((await house.visitor().login(username, 'wrong')).statusCode, 401, prefix)
      }
    })

    it('refuses a disabled clinician, at once also where they are logged in', async () => {
      await house.addClinician('gone')
      const visitor = await house.loggedIn('gone')
      assert.equal((await visitor.get('/portal')).statusCode, 200)
      const disable = house.store.db.updateTable('clinician').set({ disabled: true })
      await disable.where('username', '=', 'gone').execute()
      assert.equal((await visitor.get('/portal')).headers.location, '/login')
      const again = await house.visitor().login('gone')
      assert.equal(again.statusCode, 401)
      assert.ok(again.body.includes(WRONG))
    })

    it('refuses a hash that is none, and a password that bcrypt would cut', async () => {
      const long = 'x'.repeat(72)
      await sql`INSERT INTO clinician (username, password_hash, display_name, fhir_user_id) VALUES
        ('plaintext', 'sallyport', 'Dr. Plaintext', 'p-1'), ('long', ${await hash(long, 4)}, 'Dr. Long', 'p-2')`.execute(
        house.store.db,
      )
      assert.equal((await house.visitor().login('plaintext', 'sallyport')).statusCode, 401)
      assert.equal((await house.visitor().login('long', long)).statusCode, 302)
      assert.equal((await house.visitor().login('long', `${long}y`)).statusCode, 401)
    })

    it('answers the eleventh attempt in 5 minutes with 429, even when it is right', async () => {
      await house.addClinician('forgetful')
      const start = house.time.now
      for (let at = 0; at < 10; at++) {
        house.time.now += 1000
        assert.equal((await house.visitor().login('forgetful', 'wrong')).statusCode, 401)
      }
      const locked = await house.visitor().login('forgetful')
      assert.equal(locked.statusCode, 429)
      assert.equal(locked.headers['retry-after'], String(300 - 9))
      assert.match(locked.body, /Too many attempts/)
      // Another username from the same address is not locked.
      assert.equal((await house.visitor().login()).statusCode, 302)
      house.time.now = start + 1000 + 300_000 - 1
      assert.equal((await house.visitor().login('forgetful')).statusCode, 429)
      house.time.now += 1
      assert.equal((await house.visitor().login('forgetful')).statusCode, 302)
    })

    it('counts from the address, and forgets after a success', async () => {
      await house.addClinician('roaming')
      const from = (remoteAddress: string, password: string) =>
        house.app.inject({
          method: 'POST',
          url: '/login',
          remoteAddress,
          payload: `username=roaming&password=${password}`,
          headers: { 'content-type': 'application/x-www-form-urlencoded' },
        })
      for (let at = 0; at < 10; at++) await from('10.0.0.1', 'wrong')
      assert.equal((await from('10.0.0.1', 'sallyport')).statusCode, 429)
      for (let at = 0; at < 9; at++) await from('10.0.0.2', 'wrong')
      assert.equal((await from('10.0.0.2', 'sallyport')).statusCode, 302)
      assert.equal((await from('10.0.0.2', 'wrong')).statusCode, 401)
    })

    it('lets no guess through beyond the limit when many come at the same moment', async () => {
      await house.addClinician('target')
      const wrong = Array.from({ length: 40 }, () => house.visitor().login('target', 'wrong'))
      await Promise.all(wrong)
      const failures = await house.visitor().login('target')
      assert.equal(failures.statusCode, 429)
    })

    it('lets many right logins in at the same moment', async () => {
      const responses = await Promise.all(Array.from({ length: 30 }, () => house.visitor().login()))
      assert.ok(responses.every(response => response.statusCode === 302))
    })

    it('refuses a form of another site', async () => {
      const form = { username: 'clinician', password: 'sallyport' }
      for (const headers of [{ 'sec-fetch-site': 'cross-site' }, { origin: 'https://evil.example' }])
        assert.equal((await house.visitor().post('/login', form, headers)).statusCode, 403)
      const own = { 'sec-fetch-site': 'same-origin' }
      assert.equal((await house.visitor().post('/login', form, own)).statusCode, 302)
    })
  })
})

describe('GET /login', () => {
  const open = oneStore()

  it('shows the form, and on a laptop the test login while it is right', async () => {
    const house = await AuthHouse.open(await open())
    const page = await house.visitor().get('/login')
    assert.equal(page.statusCode, 200)
    for (const text of ['action="/login"', 'name="username"', 'name="password"', '<code>sallyport</code>'])
      assert.ok(page.body.includes(text), text)
    assert.match(String(page.headers['content-security-policy']), /frame-ancestors 'none'/)
    await house.store.db
      .updateTable('clinician')
      .set({ password_hash: await hash('other', 4) })
      .execute()
    assert.doesNotMatch((await house.visitor().get('/login')).body, /Test login/)
  })

  it('does not show the test login off loopback, or with a real FHIR server', async () => {
    const { fhir } = (await import('../testing/settings.ts')).testSettings
    for (const settings of [
      { onLoopback: false },
      { fhir: { ...fhir, upstreamUrl: 'https://fhir.example' } },
    ]) {
      const house = await AuthHouse.open(await open(), { settings })
      assert.doesNotMatch((await house.visitor().get('/login')).body, /Test login/)
    }
  })

  it('binds the cookie to the host under https', async () => {
    const settings = { issuerUrl: 'https://auth.example' }
    const house = await AuthHouse.open(await open(), { settings })
    const [cookie] = (await house.visitor().login()).cookies
    assert.equal(cookie?.name, '__Host-sallyport-login')
    assert.equal(cookie?.secure, true)
  })

  it('takes about as long for an unknown username as for a wrong password', async () => {
    const house = await AuthHouse.open(await open())
    await house.store.db
      .updateTable('clinician')
      .set({ password_hash: await hash('sallyport', 10) })
      .execute()
    const time = async (username: string) => {
      const start = performance.now()
      await house.visitor().login(username, 'wrong')
      return performance.now() - start
    }
    await time('clinician')
    const known = Math.min(await time('clinician'), await time('clinician'))
    const unknown = Math.min(await time('nobody'), await time('nobody'))
    assert.ok(unknown > known / 3, `known ${known} ms, unknown ${unknown} ms`)
  })
})

describe('/logout', () => {
  const open = oneStore()

  it('shows a button on GET and ends the login on POST', async () => {
    const house = await AuthHouse.open(await open())
    const visitor = await house.loggedIn()
    const id = visitor.cookies.get('sallyport-login') ?? ''
    const page = await visitor.get('/logout')
    assert.match(page.body, /<form[^>]*method="post" action="\/logout"/)
    assert.equal((await visitor.get('/portal')).statusCode, 200)
    const response = await visitor.post('/logout', {})
    assert.equal(response.headers.location, '/login?signed-out=1')
    assert.equal(visitor.cookies.size, 0)
    assert.match((await visitor.get('/login?signed-out=1')).body, /You are signed out\./)
    assert.doesNotMatch((await visitor.get('/login')).body, /You are signed out/)
    visitor.cookies.set('sallyport-login', id)
    assert.equal((await visitor.get('/portal')).headers.location, '/login')
  })

  it('tells nobody who is signed in that they are not', async () => {
    const house = await AuthHouse.open(await open())
    const visitor = await house.loggedIn()
    assert.doesNotMatch((await visitor.get('/login?signed-out=1')).body, /You are signed out/)
  })

  it('refuses a POST of another site, and is calm when nobody is logged in', async () => {
    const house = await AuthHouse.open(await open())
    const visitor = await house.loggedIn()
    assert.equal((await visitor.post('/logout', {}, { 'sec-fetch-site': 'cross-site' })).statusCode, 403)
    assert.equal((await visitor.get('/portal')).statusCode, 200)
    assert.equal((await house.visitor().post('/logout', {})).headers.location, '/login?signed-out=1')
    assert.equal((await house.visitor().get('/logout')).headers.location, '/login')
  })
})
