import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { hash } from 'bcrypt'
import { sql } from 'kysely'
import { eachDatabaseIfThorough } from '../../../../test/support/databases.ts'
import { TestAuthServer } from '../../testing/test-auth-server.ts'
import { openTestStore } from '../../testing/test-store.ts'
import { seedSampleAccounts } from '../../users/accounts.ts'

const WRONG = 'The username or password is incorrect. Check both and try again.'

eachDatabaseIfThorough((_name, open) => {
  describe('POST /login', () => {
    let auth: TestAuthServer
    before(async () => {
      auth = await TestAuthServer.open(await open())
    })

    it('redirects a clinician to the portal with a cookie for this server (LOGIN-4)', async () => {
      const response = await auth.openBrowser().login()
      assert.equal(response.statusCode, 302)
      assert.equal(response.headers.location, '/portal')
      const [cookie] = response.cookies
      assert.match(cookie?.value ?? '', /^[\w-]{43}$/)
      assert.deepEqual(
        { ...cookie, value: '' },
        { name: 'sallyport-login', value: '', path: '/', httpOnly: true, sameSite: 'Lax', priority: 'High' },
      )
    })

    it('does not distinguish a wrong username from a wrong password (LOGIN-5)', async () => {
      const browser = auth.openBrowser()
      const password = await browser.login('clinician', 'wrong')
      const username = await browser.login('nobody', 'sallyport')
      for (const response of [password, username]) {
        assert.equal(response.statusCode, 401)
        assert.ok(response.body.includes(WRONG))
        assert.equal(response.cookies.length, 0)
      }
      assert.match(password.body, /<input[^>]* name="password"[^>]* autofocus>/)
      assert.match(password.body, /<a href="#help">Forgot your password\?<\/a>/)
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
        assert.equal((await auth.openBrowser().post('/login', form)).statusCode, 401, form)
    })

    it('gives each login its own id, and ends the previous one', async () => {
      const browser = auth.openBrowser()
      browser.cookies.set('sallyport-login', 'planted-by-someone-else')
      await browser.login()
      const first = browser.cookies.get('sallyport-login') ?? ''
      assert.notEqual(first, 'planted-by-someone-else')
      await browser.login()
      assert.notEqual(browser.cookies.get('sallyport-login'), first)
      const old = auth.openBrowser()
      old.cookies.set('sallyport-login', first)
      assert.equal((await old.get('/portal')).headers.location, '/login')
    })

    it('creates a login of 8 hours (LOGIN-8)', async () => {
      const browser = await auth.logIn()
      auth.time.now += 8 * 3_600_000 - 1
      assert.equal((await browser.get('/portal')).statusCode, 200)
      auth.time.now += 1
      assert.equal((await browser.get('/portal')).headers.location, '/login')
    })

    it('accepts a clinician who was added by one SQL line, with $2a$, $2b$ and $2y$ hashes (LOGIN-2)', async () => {
      for (const prefix of ['$2a$', '$2b$', '$2y$']) {
        const username = `plain ${prefix}`
        const made = (await hash('correct horse', 4)).replace(/^\$2b\$/, prefix)
        await sql`INSERT INTO clinician (username, password_hash, display_name, fhir_user_id) VALUES (${username}, ${made}, 'Dr. Plain', 'p-9')`.execute(
          auth.store.db,
        )
        assert.equal(
          (await auth.openBrowser().login(username, 'correct horse')).headers.location,
          '/portal',
          prefix,
        )
        assert.equal((await auth.openBrowser().login(username, 'wrong')).statusCode, 401, prefix)
      }
    })

    it('refuses a disabled clinician, and ends an existing login at once (LOGIN-9)', async () => {
      await auth.addUser('gone')
      const browser = await auth.logIn('gone')
      assert.equal((await browser.get('/portal')).statusCode, 200)
      const disable = auth.store.db.updateTable('clinician').set({ disabled: true })
      await disable.where('username', '=', 'gone').execute()
      assert.equal((await browser.get('/portal')).headers.location, '/login')
      const again = await auth.openBrowser().login('gone')
      assert.equal(again.statusCode, 401)
      assert.ok(again.body.includes(WRONG))
    })

    it('refuses an invalid hash, and a password that bcrypt would truncate', async () => {
      const long = 'x'.repeat(72)
      await sql`INSERT INTO clinician (username, password_hash, display_name, fhir_user_id) VALUES
        ('plaintext', 'sallyport', 'Dr. Plaintext', 'p-1'), ('long', ${await hash(long, 4)}, 'Dr. Long', 'p-2')`.execute(
        auth.store.db,
      )
      assert.equal((await auth.openBrowser().login('plaintext', 'sallyport')).statusCode, 401)
      assert.equal((await auth.openBrowser().login('long', long)).statusCode, 302)
      assert.equal((await auth.openBrowser().login('long', `${long}y`)).statusCode, 401)
    })

    const setCost = async (username: string, cost: number) =>
      auth.store.db
        .updateTable('clinician')
        .set({ password_hash: await hash('sallyport', cost) })
        .where('username', '=', username)
        .execute()
    const readHash = async (username: string) =>
      (
        await auth.store.db
          .selectFrom('clinician')
          .select('password_hash')
          .where('username', '=', username)
          .executeTakeFirstOrThrow()
      ).password_hash

    it('upgrades a stored hash to the highest cost at the next login, and never lowers it', async () => {
      for (const [username, cost] of [
        ['cheap', 4],
        ['costly', 7],
      ] as const) {
        await auth.addUser(username)
        await setCost(username, cost)
      }
      const rehashing = await TestAuthServer.open(auth.store, { passwordCost: 5 })
      await setCost('cheap', 4)
      await setCost('costly', 7)
      assert.equal((await rehashing.openBrowser().login('cheap', 'wrong')).statusCode, 401)
      assert.match(await readHash('cheap'), /^\$2b\$04\$/)
      for (const username of ['cheap', 'costly']) {
        assert.equal((await rehashing.openBrowser().login(username)).statusCode, 302)
        assert.match(await readHash(username), /^\$2b\$(07|10)\$/)
        assert.equal((await rehashing.openBrowser().login(username)).statusCode, 302)
      }
      await rehashing.app.close()
    })

    it('refuses a form of another site', async () => {
      const form = { username: 'clinician', password: 'sallyport' }
      for (const headers of [{ 'sec-fetch-site': 'cross-site' }, { origin: 'https://evil.example' }])
        assert.equal((await auth.openBrowser().post('/login', form, headers)).statusCode, 403)
      const own = { 'sec-fetch-site': 'same-origin' }
      assert.equal((await auth.openBrowser().post('/login', form, own)).statusCode, 302)
    })
  })
})

describe('GET /login', () => {
  const open = openTestStore()

  it('shows the form and, on loopback, the test login while it is valid (LOGIN-4, PATIENTS-7)', async () => {
    const auth = await TestAuthServer.open(await open())
    const page = await auth.openBrowser().get('/login')
    assert.equal(page.statusCode, 200)
    for (const text of ['action="/login"', 'name="username"', 'name="password"', '<code>sallyport</code>'])
      assert.ok(page.body.includes(text), text)
    assert.match(String(page.headers['content-security-policy']), /frame-ancestors 'none'/)
    await seedSampleAccounts(auth.store)
    const samples = (await auth.openBrowser().get('/login')).body
    assert.match(
      samples,
      /With the same password: <code>admin<\/code> \(administrator\), <code>alba<\/code> \(patient\), <code>mira<\/code> \(mother of a patient\)\./,
    )
    await auth.store.db
      .updateTable('clinician')
      .set({ password_hash: await hash('other', 4) })
      .execute()
    assert.doesNotMatch((await auth.openBrowser().get('/login')).body, /Test login/)
  })

  it('shows no sample patients whose records the FHIR server does not have (LOGIN-4)', async () => {
    const auth = await TestAuthServer.open(await open(), { hasSampleRecords: false })
    await seedSampleAccounts(auth.store)
    const { body } = await auth.openBrowser().get('/login')
    assert.match(body, /With the same password: <code>admin<\/code> \(administrator\)\./)
    assert.doesNotMatch(body, /alba|mira/)
  })

  it('does not show the test login off loopback, or with an upstream FHIR server', async () => {
    const { fhir } = (await import('../../testing/settings.ts')).testSettings
    for (const settings of [
      { onLoopback: false },
      { fhir: { ...fhir, upstreamUrl: 'https://fhir.example' } },
    ]) {
      const auth = await TestAuthServer.open(await open(), { settings })
      assert.doesNotMatch((await auth.openBrowser().get('/login')).body, /Test login/)
    }
  })

  it('binds the cookie to the host under https', async () => {
    const settings = { issuerUrl: 'https://auth.example' }
    const auth = await TestAuthServer.open(await open(), { settings })
    const [cookie] = (await auth.openBrowser().login()).cookies
    assert.equal(cookie?.name, '__Host-sallyport-login')
    assert.equal(cookie?.secure, true)
  })
})
