import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { hash } from '@node-rs/bcrypt'
import { sql } from 'kysely'
import { eachDatabase } from '../../../test/support/databases.ts'
import { LIMITS } from '../limits.ts'
import { TestAuthServer } from '../testing/test-auth-server.ts'
import { openTestStore } from '../testing/test-store.ts'
import { tryLogin } from './attempt.ts'
import { createPasswordCheck, type PasswordResult } from './check-password.ts'
import { PasswordQueue } from './password-queue.ts'

const WRONG = 'The username or password is incorrect. Check both and try again.'

eachDatabase((_name, open) => {
  describe('POST /login', () => {
    let house: TestAuthServer
    before(async () => {
      house = await TestAuthServer.open(await open())
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

    it('does not let the right guess in that comes with many wrong ones at the same moment', async () => {
      await house.addClinician('guessed')
      const wrong = Array.from({ length: 60 }, () => house.visitor().login('guessed', 'wrong'))
      const right = await house.visitor().login('guessed')
      assert.equal(right.statusCode, 429)
      const statuses = (await Promise.all(wrong)).map(response => response.statusCode)
      const counted = statuses.filter(status => status === 401).length
      assert.ok(counted >= 10 && counted < 10 + LIMITS.passwordsAtOnce, `${counted} guesses were looked at`)
    })

    it('lets many right logins in at the same moment', async () => {
      const responses = await Promise.all(Array.from({ length: 30 }, () => house.visitor().login()))
      assert.ok(responses.every(response => response.statusCode === 302))
    })

    it('answers 429 when an address has failed too often, whatever the username, and not another address', async () => {
      const limited = await TestAuthServer.open(house.store, {
        settings: { loginFailureLimitPerAddress: 20 },
      })
      limited.time.now += 400_000
      const from = (remoteAddress: string, username: string, password: string) =>
        limited.app.inject({
          method: 'POST',
          url: '/login',
          remoteAddress,
          payload: `username=${username}&password=${password}`,
          headers: { 'content-type': 'application/x-www-form-urlencoded' },
        })
      for (const [own, near, far] of [
        ['10.1.0.1', '10.1.0.1', '10.1.0.2'],
        // One network is one address: whoever has it has 2^64 of them.
        ['2001:db8:1:2::1', '2001:db8:1:2:ffff::9', '2001:db8:1:3::1'],
      ] as const) {
        for (let at = 0; at < 20; at++)
          assert.equal((await from(own, `spray-${own}-${at}`, 'wrong')).statusCode, 401)
        const refused = await from(near, 'clinician', 'sallyport')
        assert.equal(refused.statusCode, 429)
        assert.equal(refused.headers['retry-after'], '300')
        assert.equal((await from(far, 'clinician', 'sallyport')).statusCode, 302)
      }
      limited.time.now += 300_000
      assert.equal((await from('10.1.0.1', 'clinician', 'sallyport')).statusCode, 302)
      await limited.app.close()
    })

    it('counts the guesses at one username from one IPv6 network together, whatever their address', async () => {
      const from = (remoteAddress: string, password: string) =>
        house.app.inject({
          method: 'POST',
          url: '/login',
          remoteAddress,
          payload: `username=clinician&password=${password}`,
          headers: { 'content-type': 'application/x-www-form-urlencoded' },
        })
      for (let at = 1; at <= 10; at++)
        assert.equal((await from(`2001:db8:7:7::${at}`, 'wrong')).statusCode, 401)
      assert.equal((await from('2001:db8:7:7::b', 'sallyport')).statusCode, 429)
      assert.equal((await from('2001:db8:7:8::b', 'sallyport')).statusCode, 302)
    })

    const setCost = async (username: string, cost: number) =>
      house.store.db
        .updateTable('clinician')
        .set({ password_hash: await hash('sallyport', cost) })
        .where('username', '=', username)
        .execute()
    const hashOf = async (username: string) =>
      (
        await house.store.db
          .selectFrom('clinician')
          .select('password_hash')
          .where('username', '=', username)
          .executeTakeFirstOrThrow()
      ).password_hash

    it('makes a stored hash as costly as the costliest at the next login, and never cheaper', async () => {
      for (const [username, cost] of [
        ['cheap', 4],
        ['costly', 7],
      ] as const) {
        await house.addClinician(username)
        await setCost(username, cost)
      }
      const rehashing = await TestAuthServer.open(house.store, { passwordCost: 5 })
      await setCost('cheap', 4)
      await setCost('costly', 7)
      assert.equal((await rehashing.visitor().login('cheap', 'wrong')).statusCode, 401)
      assert.match(await hashOf('cheap'), /^\$2b\$04\$/)
      for (const username of ['cheap', 'costly']) {
        assert.equal((await rehashing.visitor().login(username)).statusCode, 302)
        assert.match(await hashOf(username), /^\$2b\$(07|10)\$/)
        assert.equal((await rehashing.visitor().login(username)).statusCode, 302)
      }
      await rehashing.app.close()
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
  const open = openTestStore()

  it('shows the form, and on a laptop the test login while it is right', async () => {
    const house = await TestAuthServer.open(await open())
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
      const house = await TestAuthServer.open(await open(), { settings })
      assert.doesNotMatch((await house.visitor().get('/login')).body, /Test login/)
    }
  })

  it('binds the cookie to the host under https', async () => {
    const settings = { issuerUrl: 'https://auth.example' }
    const house = await TestAuthServer.open(await open(), { settings })
    const [cookie] = (await house.visitor().login()).cookies
    assert.equal(cookie?.name, '__Host-sallyport-login')
    assert.equal(cookie?.secure, true)
  })

  it('answers a right login at once while 64 others with made-up usernames wait for theirs', async () => {
    const flooded = await TestAuthServer.open(await open())
    await flooded.addClinician('punctual')
    const password_hash = await hash('sallyport', 8)
    await flooded.store.db.updateTable('clinician').set({ password_hash }).execute()
    const order: string[] = []
    const began = performance.now()
    const flood = Array.from({ length: 64 }, (_, at) =>
      flooded
        .visitor()
        .login(`made-up-${at}`, 'wrong')
        .then(({ statusCode }) => order.push(String(statusCode))),
    )
    const mistyped = flooded.visitor().login('punctual', 'wrong')
    const right = await flooded.visitor().login('punctual')
    const waited = performance.now() - began
    assert.equal(right.statusCode, 302)
    assert.ok(order.length < 12, `${order.length} of the flood were answered first`)
    // A wrong password of an existing username waits as long as the others: time tells nothing.
    const answered = await mistyped.then(() => order.length)
    assert.ok(answered > 50, `it was answered after ${answered}`)
    await Promise.all(flood)
    assert.deepEqual(new Set(order), new Set(['401']))
    const share = waited / (performance.now() - began)
    assert.ok(share < 0.5, `it took ${share.toFixed(2)} of the time that all of them took`)
  })

  it('refuses further logins with a username that has 100 waiting, and answers those of others', async () => {
    const house = await TestAuthServer.open(await open(), { settings: { loginFailureLimit: 1_000 } })
    await house.addClinician('guessed')
    const flood = Array.from({ length: LIMITS.loginsWaitingPerUsername + 20 }, () =>
      house.visitor().login('guessed', 'wrong'),
    )
    assert.equal((await house.visitor().login('clinician')).statusCode, 302)
    const answers = await Promise.all(flood)
    const refused = answers.filter(({ statusCode }) => statusCode === 429)
    assert.ok(refused.length > 0 && refused.length <= 20, `${refused.length} were refused`)
    for (const { headers, body } of refused) {
      assert.ok(Number(headers['retry-after']) > 0)
      assert.match(body, /Too many attempts/)
    }
    assert.deepEqual(new Set(answers.map(({ statusCode }) => statusCode)), new Set([401, 429]))
  })

  it('compares and counts a wrong password even if the queue is full', async () => {
    const { store, settings, time } = await TestAuthServer.open(await open())
    const check = createPasswordCheck({ store, clock: () => time.now, cost: 4 })
    const passwordHash = await hash('sallyport', 4)
    const told: PasswordResult[] = []
    const { promise: held, resolve: release } = Promise.withResolvers<void>()
    const send = (network: string, stored: string | undefined, until: Promise<void> = Promise.resolve()) =>
      check(
        { username: network, network, password: 'wrong', enabled: true, passwordHash: stored },
        async result => {
          told.push(result)
          await until
          return { kind: 'refused' }
        },
      )
    const running = Array.from({ length: LIMITS.passwordsAtOnce }, () => send('running', passwordHash, held))
    const flood = Array.from({ length: LIMITS.loginsWaiting }, (_, at) => send(`flood-${at}`, undefined))
    const known = send('known', passwordHash)
    await send('made-up', undefined)
    assert.deepEqual(told.at(-1), { kind: 'wrong', queueIsFull: true })
    release()
    await known
    assert.deepEqual(told[LIMITS.passwordsAtOnce + 1], { kind: 'wrong', queueIsFull: true })
    await Promise.all([...running, ...flood])

    const attempt = (result: PasswordResult) =>
      tryLogin(
        { store, settings, clock: () => time.now, checkPassword: (_, settle) => settle(result) },
        { username: 'clinician', password: 'any', address: '10.0.0.1' },
        async ({ keep }) => keep && store.db.transaction().execute(keep),
      )
    for (let at = 0; at < settings.loginFailureLimit; at++) {
      const { kind, ...refused } = await attempt({ kind: 'wrong', queueIsFull: true })
      assert.deepEqual([kind, 'retryAfterSeconds' in refused && refused.retryAfterSeconds], ['too-many', 5])
    }
    assert.equal((await attempt({ kind: 'right', newHash: undefined })).kind, 'too-many')
  })

  it('gives every username a turn before any has a second, from however many networks it is guessed at', async () => {
    const queue = new PasswordQueue({ atOnce: 1, longest: 400 })
    const order: string[] = []
    const attempt = (username: string, network: string) =>
      queue.run({ sender: [username, network], first: true }, async () =>
        order.push(`${username} ${network}`),
      )
    await Promise.all([
      ...Array.from({ length: 100 }, (_, at) => attempt('known', `attacker-${at}`)),
      attempt('known', 'attacker-1'),
      attempt('known', 'own'),
      attempt('other', 'own'),
    ])
    assert.equal(order.indexOf('other own'), 2)
    assert.equal(order.indexOf('known own'), 101)
    assert.equal(order.at(-1), 'known attacker-1')
    assert.equal(order.length, 103)
  })

  it('takes as long for any username, whatever the cost of its hash', async () => {
    const house = await TestAuthServer.open(await open())
    await house.addClinician('costly')
    const store = async (username: string, cost: number) =>
      house.store.db
        .updateTable('clinician')
        .set({ password_hash: await hash('sallyport', cost) })
        .where('username', '=', username)
        .execute()
    await store('costly', 10)
    await store('clinician', 5)
    const best = new Map<string, number>()
    for (let round = 0; round < 4; round++)
      for (const username of ['costly', 'clinician', 'nobody']) {
        const start = performance.now()
        await house.visitor().login(username, 'wrong')
        const took = performance.now() - start
        best.set(username, Math.min(took, best.get(username) ?? took))
      }
    const times = [...best.values()]
    // Without the padding it is 32 times.
    assert.ok(Math.max(...times) / Math.min(...times) < 4, JSON.stringify([...best]))
  })

  it('takes about as long for an unknown username as for a wrong password', async () => {
    const house = await TestAuthServer.open(await open())
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

describe('a login that is not used', () => {
  const open = openTestStore()
  const MINUTE = 60_000

  it('ends after the idle time, which every page moves, and a page that only looks for news does not', async () => {
    const house = await TestAuthServer.open(await open(), { settings: { loginIdleSeconds: 1800 } })
    const visitor = await house.loggedIn()
    const opens = async (headers = {}) =>
      (await visitor.get('/portal', headers)).headers.location !== '/login'
    for (let at = 0; at < 4; at++) {
      house.time.now += 29 * MINUTE
      assert.equal(await opens({ 'sec-fetch-mode': 'navigate' }), true)
    }
    house.time.now += 20 * MINUTE
    assert.equal(await opens({ 'sec-fetch-mode': 'cors' }), true)
    house.time.now += 9 * MINUTE
    // Over plain http browsers send no Sec-Fetch-Mode.
    assert.equal(await opens({ 'x-requested-with': 'fetch' }), true)
    house.time.now += 1 * MINUTE
    assert.equal(await opens(), false)
    assert.equal((await visitor.get('/activity')).headers.location, '/login')
  })

  it('still has its maximum of 8 hours, however much it is used', async () => {
    const house = await TestAuthServer.open(await open(), { settings: { loginIdleSeconds: 1800 } })
    const visitor = await house.loggedIn()
    for (let at = 0; at < 24; at++) {
      house.time.now += 20 * MINUTE
      const location = (await visitor.get('/portal')).headers.location
      assert.equal(location, at === 23 ? '/login' : undefined)
    }
  })

  it('is followed by the apps of the same clinician when they log in again, and can be ended', async () => {
    const house = await TestAuthServer.open(await open(), { settings: { loginIdleSeconds: 1800 } })
    const visitor = await house.loggedIn()
    const tokens = (await house.exchange(await house.code(visitor))).json()
    house.time.now += 31 * MINUTE
    const renewed = await house.refresh(tokens.refresh_token)
    assert.equal(renewed.statusCode, 200)
    await visitor.login()
    house.time.now += 7 * 60 * MINUTE
    const later = await house.refresh(renewed.json().refresh_token)
    assert.equal(later.statusCode, 200)
    await visitor.post('/logout', {})
    assert.equal((await house.refresh(later.json().refresh_token)).statusCode, 400)
  })

  it('lasts until its maximum where no idle time is set, as on loopback', async () => {
    const house = await TestAuthServer.open(await open())
    const visitor = await house.loggedIn()
    house.time.now += 7 * 60 * MINUTE
    assert.equal((await visitor.get('/portal')).statusCode, 200)
  })
})

describe('/logout', () => {
  const open = openTestStore()

  it('shows a button on GET and ends the login on POST', async () => {
    const house = await TestAuthServer.open(await open())
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
    const house = await TestAuthServer.open(await open())
    const visitor = await house.loggedIn()
    assert.doesNotMatch((await visitor.get('/login?signed-out=1')).body, /You are signed out/)
  })

  it('refuses a POST of another site, and is calm when nobody is logged in', async () => {
    const house = await TestAuthServer.open(await open())
    const visitor = await house.loggedIn()
    assert.equal((await visitor.post('/logout', {}, { 'sec-fetch-site': 'cross-site' })).statusCode, 403)
    assert.equal((await visitor.get('/portal')).statusCode, 200)
    assert.equal((await house.visitor().post('/logout', {})).headers.location, '/login?signed-out=1')
    assert.equal((await house.visitor().get('/logout')).headers.location, '/login')
  })
})
