import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { eachDatabase } from '../../../../test/support/databases.ts'
import { createAuditor, findRecords } from '../../../audit/index.ts'
import { openStore, type Store } from '../../../store/index.ts'
import { changeUser } from '../../admin/accounts/change-user.ts'
import { USER_OPERATIONS } from '../../admin/accounts/user-operations.ts'
import { makeCommandLine } from '../../admin/base/action.ts'
import { LIMITS } from '../../base/limits.ts'
import { addPhone, readCodes, readEnrolment, TestPhone } from '../../testing/second-factor.ts'
import { testSettings } from '../../testing/settings.ts'
import { decodeClaims, readRedirect, TestAuthServer } from '../../testing/test-auth-server.ts'
import { TestBrowser } from '../../testing/test-browser.ts'

const LEFT = /recovery codes left/
const MFA = 'https://refeds.org/profile/mfa'

eachDatabase((_name, _open, create) => {
  describe('a second factor', () => {
    let auth: TestAuthServer
    /** The same database with other settings. */
    let strict: TestAuthServer
    const stores: Store[] = []
    let count = 0
    before(async () => {
      const url = await create()
      const openServer = async (secondFactor: 'none' | 'administrators') => {
        const store = await openStore(url)
        stores.push(store)
        const settings = {
          login: { ...testSettings.login, secondFactor },
          brand: { ...testSettings.brand, support: 'Help desk, help@north.example' },
        }
        return TestAuthServer.open(store, { settings, audit: createAuditor({ store, failure: 'refuse' }) })
      }
      auth = await openServer('none')
      strict = await openServer('administrators')
    })
    after(() => Promise.all(stores.map(store => store.close())))

    /** A user with an authenticator app. */
    async function add() {
      const username = `user-${count++}`
      await auth.addUser(username)
      const browser = await auth.logIn(username)
      return { username, browser, ...(await addPhone(auth, browser)) }
    }
    const passFirstStep = async (username: string, server = auth) => {
      const browser = server.openBrowser()
      const response = await browser.login(username)
      assert.equal(response.headers.location, '/login/second-factor')
      return browser
    }
    const enter = (browser: TestBrowser, code: string) => browser.post('/login/second-factor', { code })
    /** From an address, with the cookies of a browser that has passed the first step. */
    const sendFrom = (remoteAddress: string, form: Readonly<Record<string, string>>, browser: TestBrowser) =>
      auth.app.inject({
        method: 'POST',
        url: '/login/second-factor',
        remoteAddress,
        payload: `${new URLSearchParams(form)}`,
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        cookies: Object.fromEntries(browser.cookies),
      })
    const isSignedIn = async (browser: TestBrowser) => (await browser.get('/portal')).statusCode === 200
    const findLast = async () => (await findRecords(auth.store, { events: [{ kind: 'login' }], limit: 1 }))[0]
    const makeAdmin = (server: TestAuthServer) => ({
      ...server,
      audit: createAuditor({ store: server.store, failure: 'refuse' }),
      clock: () => server.time.now,
      rules: server.rules,
      ...makeCommandLine('tester@test'),
    })

    it('is called two-step sign-in on the pages, which name whom to ask', async () => {
      const { username, browser } = await add()
      for (const [visitor, path] of [
        [browser, '/account/factors'],
        [await passFirstStep(username), '/login/second-factor'],
      ] as const) {
        const { body } = await visitor.get(path)
        assert.match(body, /<title>Two-step sign-in[\s\S]*<h1>Two-step sign-in<\/h1>/)
        assert.match(body, /Help: Help desk, <a href="mailto:help@north.example">/)
        assert.doesNotMatch(body, /second factor(?!")/i)
      }
    })

    it('is asked for after the password, and nothing is given before (FACTOR-1, FACTOR-2)', async () => {
      const { username, phone } = await add()
      const browser = await passFirstStep(username)
      assert.equal((await findLast())?.reason, 'Password accepted, a second factor is required')
      assert.equal(browser.cookies.has('sallyport-login'), false)
      for (const path of ['/portal', '/manage', '/account/factors'])
        assert.equal((await browser.get(path)).headers.location, '/login', path)
      assert.match((await auth.authorize(browser)).headers.location ?? '', /^\/login\?/)
      assert.equal(
        (await browser.post('/portal/launch', { patientId: 'juniper' })).headers.location,
        '/login',
      )
      assert.match((await browser.get('/login/second-factor')).body, /Dr\. user-/)
      assert.equal((await enter(browser, '000000')).statusCode, 401)
      const failed = await findLast()
      assert.deepEqual([failed?.allowed, failed?.reason], [false, 'Wrong second factor'])
      assert.equal((await enter(browser, phone.takeNextCode())).headers.location, '/portal')
      assert.equal(await isSignedIn(browser), true)
      const done = await findLast()
      assert.deepEqual([done?.allowed, done?.reason], [true, 'Signed in with an authenticator app'])
    })

    it('gives each code and recovery code one use, also to simultaneous sign-ins on two instances (FACTOR-2, FACTOR-3)', async () => {
      const { username, phone, codes } = await add()
      assert.equal(codes.length, 10)
      auth.time.now += 30_000
      strict.time.now = auth.time.now
      for (const code of [phone.getCode(), codes[0] ?? '']) {
        const browsers = await Promise.all(
          Array.from({ length: 8 }, (_, at) => passFirstStep(username, at % 2 === 0 ? auth : strict)),
        )
        const responses = await Promise.all(browsers.map(browser => enter(browser, code)))
        const won = responses.filter(({ headers, body }) => headers.location === '/portal' || LEFT.test(body))
        assert.equal(won.length, 1, code)
        assert.equal((await Promise.all(browsers.map(isSignedIn))).filter(Boolean).length, 1)
        auth.time.now += 600_000
        strict.time.now = auth.time.now
      }
    })

    it('accepts a recovery code in any case, and new codes replace the old ones (FACTOR-3)', async () => {
      const { username, phone, browser, codes } = await add()
      const [first = '', second = ''] = codes
      const typed = await enter(await passFirstStep(username), ` ${first.toUpperCase().replaceAll('-', ' ')}`)
      assert.match(typed.body, /You have 9 recovery codes left\.[\s\S]*href="\/portal">Continue/)
      assert.equal((await findLast())?.reason, 'Signed in with a recovery code')
      assert.match((await browser.get('/account/factors')).body, /You have 9 recovery codes left/)
      const fresh = readCodes(await browser.post('/account/factors/recovery-codes', {}))
      assert.equal(fresh.length, 10)
      const old = await enter(await passFirstStep(username), second)
      assert.equal(old.statusCode, 401)
      assert.match(old.body, /This recovery code is wrong or was used before\. Check every character/)
      const cut = await enter(await passFirstStep(username), second.slice(1))
      assert.doesNotMatch(cut.body, /Wait for the next one/)
      assert.match((await enter(await passFirstStep(username), fresh[0] ?? '')).body, LEFT)
      const stored = await auth.store.db.selectFrom('recovery_code').select('code_hash').execute()
      assert.ok(!JSON.stringify(stored).includes((fresh[1] ?? '').replaceAll('-', '')))
      const [factor] = await auth.store.db.selectFrom('factor').selectAll().execute()
      assert.match(factor?.secret_sealed ?? '', /^v\d\./)
      assert.ok(phone)
    })

    it('allows ten wrong codes of a sender in five minutes, and refuses nobody else (FACTOR-4)', async () => {
      const { username, phone, codes } = await add()
      const thief = await passFirstStep(username)
      const stolen = async (code: string, address = '203.0.113.9') => sendFrom(address, { code }, thief)
      const responses = await Promise.all(Array.from({ length: 30 }, () => stolen('000000')))
      let wrong = responses.filter(({ statusCode }) => statusCode === 401).length
      while ((await stolen('000000')).statusCode === 401) wrong += 1
      assert.equal(wrong, 10)
      const refused = await stolen(phone.takeNextCode())
      assert.equal(refused.statusCode, 429)
      assert.ok(Number(refused.headers['retry-after']) > 0)
      assert.equal((await stolen('000000', '203.0.113.10')).statusCode, 401, 'another network')
      // The owner, whose network the account knows.
      const owner = await passFirstStep(username)
      assert.equal((await enter(owner, phone.takeNextCode())).headers.location, '/portal')
      const recovered = await stolen(codes[0] ?? '')
      assert.match(recovered.body, LEFT, 'whoever has a recovery code gets in')
    })

    it('is not refused because of wrong recovery codes, from wherever they come, and its owner sees them (FACTOR-4)', async () => {
      const { username, phone, codes, browser } = await add()
      assert.doesNotMatch((await browser.get('/account')).body, /wrong code/)
      const thief = await passFirstStep(username)
      const statuses: number[] = []
      for (let count = 0; count < 25; count++)
        statuses.push(
          (
            await sendFrom(
              '127.0.0.1',
              { code: `abcd-efgh-ijkl-${2222 + count}`.replace(/[0189]/g, '7') },
              thief,
            )
          ).statusCode,
        )
      assert.deepEqual(statuses, [...Array(10).fill(401), ...Array(15).fill(429)])
      const passkey = await sendFrom('127.0.0.1', { credential: '{}' }, thief)
      assert.equal(passkey.statusCode, 429)
      assert.match(
        (await enter(await passFirstStep(username), codes[0] ?? '')).body,
        LEFT,
        'in the same network',
      )
      auth.time.now += 300_000
      assert.equal(
        (await enter(await passFirstStep(username), phone.takeNextCode())).headers.location,
        '/portal',
      )
      assert.match(
        (await browser.get('/account')).body,
        /<b>26 wrong codes or passkeys were entered after your password/,
      )
      assert.match(
        (await browser.get('/account/factors')).body,
        /26 wrong codes or passkeys were entered[\s\S]*from 127\.0\.0\.1\. If that was not you, somebody knows your password: <a href="\/account\/password">/,
      )
    })

    it('is accepted in a browser that the account knows, whatever others of its network do (FACTOR-4)', async () => {
      const { username, phone, browser } = await add()
      const thief = await passFirstStep(username)
      while ((await enter(thief, '000000')).statusCode === 401);
      assert.equal((await enter(await passFirstStep(username), phone.takeNextCode())).statusCode, 429)
      await browser.login(username)
      assert.equal((await enter(browser, phone.getCode())).headers.location, '/portal')
    })

    it('allows 20 wrong codes in 24 hours from strangers, whatever the account signed in with meanwhile (FACTOR-4)', async () => {
      const { username, phone, codes } = await add()
      const start = auth.time.now
      const guess = async (code = '000000', address = '203.0.113.20') =>
        (await sendFrom(address, { code }, await passFirstStep(username))).statusCode
      for (let wrong = 0; wrong < 20; wrong++) {
        auth.time.now += 60_000
        if (wrong === 10)
          assert.equal((await enter(await passFirstStep(username), phone.getCode())).statusCode, 302)
        else if (wrong % 7 === 0) auth.time.now += 300_000
        assert.equal(await guess('000000', `203.0.113.${wrong}`), 401)
      }
      auth.time.now += 300_000
      const refused = await sendFrom(
        '203.0.113.99',
        { code: phone.takeNextCode() },
        await passFirstStep(username),
      )
      assert.equal(refused.statusCode, 429)
      assert.match(refused.body, /Use a recovery code or a passkey, or ask an administrator/)
      assert.equal((await findLast())?.reason, 'Too many wrong codes in 24 hours')
      const recovered = await sendFrom(
        '203.0.113.99',
        { code: codes[0] ?? '' },
        await passFirstStep(username),
      )
      assert.match(recovered.body, LEFT, 'a recovery code cannot be guessed')
      const owner = await passFirstStep(username)
      assert.equal(
        (await enter(owner, phone.takeNextCode())).statusCode,
        302,
        'a network that the account knows',
      )
      await auth.addUser(`officer-${username}`, { admin: true })
      const { id } = await auth.findUser(username)
      const officer = await auth.logIn(`officer-${username}`)
      assert.match(
        (await officer.get(`/admin/clinicians/${id}`)).body,
        /Wrong codes and passkeys[\s\S]*20 in 30 days[\s\S]*Codes refused[\s\S]*203\.0\.113\.19/,
      )

      const { perform } = USER_OPERATIONS['set-password']
      await perform(makeAdmin(auth), { username }, { password: 'sallyport' })
      assert.equal(await guess(phone.takeNextCode(), '203.0.113.98'), 302, 'after a new password')
      assert.ok(auth.time.now < start + 86_400_000)
    })

    it('is refused in another browser, after ten minutes, and after a change of the account (FACTOR-1)', async () => {
      const { username, phone } = await add()
      await passFirstStep(username)
      const other = auth.openBrowser()
      assert.equal((await enter(other, phone.takeNextCode())).headers.location, '/login')
      other.cookies.set('sallyport-pending-login', 'planted')
      assert.equal((await enter(other, phone.getCode())).headers.location, '/login')
      const changed = await passFirstStep(username)
      await changeUser(makeAdmin(auth), { username }, { disabled: true })
      assert.equal((await enter(changed, phone.takeNextCode())).headers.location, '/login')
      await changeUser(makeAdmin(auth), { username }, { disabled: false })
      const late = await passFirstStep(username)
      auth.time.now += 600_000
      assert.equal((await enter(late, phone.getCode())).headers.location, '/login')
      assert.equal(await isSignedIn(late), false)
    })

    it('of another account does not count (FACTOR-1)', async () => {
      const [own, other] = [await add(), await add()]
      const browser = await passFirstStep(own.username)
      assert.equal((await enter(browser, other.phone.takeNextCode())).statusCode, 401)
      assert.equal((await enter(browser, other.codes[0] ?? '')).statusCode, 401)
      const enrolment = readEnrolment((await other.browser.get('/account/factors/add')).body)
      const stolen = await own.browser.post('/account/factors/add', { enrolment, code: '000000' })
      assert.notEqual(readEnrolment(stolen.body), enrolment, 'a key that was made for another user')
    })

    it('is in acr and amr of id_token and introspection, and meets acr_values and prompt=login (FACTOR-6)', async () => {
      const { username, browser: before, phone } = await add()
      const decode = async (browser: TestBrowser, request: Record<string, string> = {}) => {
        const code = await auth.getCode(browser, request)
        const tokens = (await auth.exchange(code)).json()
        const { acr, amr } = decodeClaims(tokens.id_token)
        return { acr, amr }
      }
      assert.deepEqual(await decode(before), { acr: undefined, amr: ['pwd'] })
      const launch = await auth.launch(before)
      auth.time.now += 1000
      const asked = await auth.authorize(before, { launch, acr_values: MFA })
      const interaction = readRedirect(asked).interaction ?? ''
      assert.match(asked.headers.location ?? '', /^\/login\?/)
      const next = await before.post('/login', { username, password: 'sallyport', interaction })
      assert.equal(next.headers.location, `/login/second-factor?interaction=${interaction}`)
      const form = { code: phone.takeNextCode(), interaction }
      const done = await before.post('/login/second-factor', form)
      assert.equal(done.headers.location, `/oauth2/resume?interaction=${interaction}`)
      const { code = '' } = readRedirect(await before.get(done.headers.location))
      const { acr, amr } = decodeClaims((await auth.exchange(code)).json().id_token)
      assert.deepEqual({ acr, amr }, { acr: MFA, amr: ['pwd', 'otp', 'mfa'] })
      assert.deepEqual(await decode(before, { acr_values: `urn:other ${MFA}` }), { acr, amr })
      const plain = `user-${count++}`
      await auth.addUser(plain)
      const weak = await decode(await auth.logIn(plain), { acr_values: MFA })
      assert.deepEqual(weak, { acr: undefined, amr: ['pwd'] }, 'voluntary: there is no second factor')
      const claims = JSON.stringify({ id_token: { acr: { essential: true, values: ['urn:other', MFA] } } })
      assert.deepEqual(await decode(before, { claims }), { acr, amr }, 'essential, and met')
      const weakLaunch = { launch: await auth.launch(await auth.logIn(plain)), claims }
      for (const prompt of [undefined, 'none']) {
        const refused = await auth.authorize(await auth.logIn(plain), { ...weakLaunch, prompt })
        assert.equal(readRedirect(refused).error, 'unmet_authentication_requirements')
      }
      const broken = await auth.authorize(before, { claims: '{' })
      assert.equal(readRedirect(broken).error, 'invalid_request')
      const { acr_values_supported: supported } = (
        await before.get('/.well-known/openid-configuration')
      ).json()
      assert.deepEqual(supported, ['phr', MFA])
    })

    it('is required of administrators by the setting: they add one before anything else (FACTOR-5)', async () => {
      const username = `user-${count++}`
      await strict.addUser(username, { admin: true })
      const earlier = await auth.logIn(username)
      assert.equal((await earlier.get('/admin')).statusCode, 200)
      const old = new TestBrowser(strict.app)
      for (const [name, value] of earlier.cookies) old.cookies.set(name, value)
      assert.equal((await old.get('/portal')).headers.location, '/login', 'a login without one has ended')
      const browser = strict.openBrowser()
      assert.equal((await browser.login(username)).headers.location, '/login/enrol')
      assert.equal((await browser.get('/portal')).headers.location, '/login')
      const { body } = await browser.get('/login/enrol')
      const phone = new TestPhone(strict, body)
      const enrolment = readEnrolment(body)
      const wrong = await browser.post('/login/enrol', { enrolment, code: '000000' })
      assert.equal(wrong.statusCode, 400)
      assert.equal(readEnrolment(wrong.body), enrolment, 'the key stays the same')
      const added = await browser.post('/login/enrol', { enrolment, code: phone.getCode() })
      assert.equal(readCodes(added).length, 10)
      assert.equal(await isSignedIn(browser), true)
      const [{ id = '' } = {}] = await strict.store.db
        .selectFrom('factor')
        .innerJoin('clinician', 'clinician.id', 'factor.clinician_id')
        .select('factor.id')
        .where('username', '=', username)
        .execute()
      const last = await browser.post('/account/factors/remove', { factor: id })
      assert.deepEqual([last.statusCode, /Add another second step first/.test(last.body)], [409, true])
      const again = await passFirstStep(username, strict)
      assert.equal((await enter(again, phone.takeNextCode())).headers.location, '/portal')
      const plain = `user-${count++}`
      await strict.addUser(plain)
      assert.equal((await strict.openBrowser().login(plain)).headers.location, '/portal')
    })

    for (const [role, change] of [
      ['administrator', { admin: true }],
      ['auditor', { auditor: true }],
    ] as const)
      it(`ends the login of a user who becomes an ${role} without one (FACTOR-5, ENDS-1)`, async () => {
        const username = `user-${count++}`
        await strict.addUser(username)
        const browser = await strict.logIn(username)
        assert.equal(await isSignedIn(browser), true)
        await changeUser(makeAdmin(strict), { username }, change)
        assert.equal(await isSignedIn(browser), false)
        assert.equal((await strict.openBrowser().login(username)).headers.location, '/login/enrol')
      })

    it('comes before a new password, and a password alone changes nothing (FACTOR-1)', async () => {
      const { username, phone } = await add()
      await auth.store.db
        .updateTable('clinician')
        .set({ must_change_password: true })
        .where('username', '=', username)
        .execute()
      const browser = await passFirstStep(username)
      const chosen = { next: 'correct horse', again: 'correct horse' }
      assert.equal(
        (await browser.post('/login/new-password', chosen)).headers.location,
        '/login/second-factor',
      )
      assert.equal((await enter(browser, phone.takeNextCode())).headers.location, '/login/new-password')
      assert.equal((await browser.post('/login/new-password', chosen)).headers.location, '/portal')
      assert.equal(await isSignedIn(browser), true)
    })

    it('is added once, also by two simultaneous forms, so that no code works twice (FACTOR-2)', async () => {
      const username = `user-${count++}`
      await auth.addUser(username)
      const browser = await auth.logIn(username)
      const { body } = await browser.get('/account/factors/add')
      const phone = new TestPhone(auth, body)
      const form = { enrolment: readEnrolment(body), code: phone.getCode() }
      const pages = await Promise.all([1, 2].map(() => browser.post('/account/factors/add', form)))
      assert.deepEqual(pages.map(({ statusCode }) => statusCode).sort(), [200, 409])
      const code = phone.takeNextCode()
      assert.equal((await enter(await passFirstStep(username), code)).statusCode, 302)
      assert.equal((await enter(await passFirstStep(username), code)).statusCode, 401)
    })

    it('is asked for while others of the network start as many sign-ins as they may (FACTOR-1)', async () => {
      const { username } = await add()
      await auth.openBrowser().get('/login/passkey')
      const [row] = await auth.store.db
        .selectFrom('pending_login')
        .selectAll()
        .where('network_hash', '<>', '')
        .execute()
      assert.ok(row)
      const flood = Array.from({ length: LIMITS.pendingPerNetwork }, (_, at) => ({
        ...row,
        id_hash: `${at}`,
      }))
      for (let at = 0; at < flood.length; at += 100)
        await auth.store.db
          .insertInto('pending_login')
          .values(flood.slice(at, at + 100))
          .execute()
      assert.equal((await auth.openBrowser().get('/login/passkey')).statusCode, 503)
      await passFirstStep(username)
      await auth.store.db.deleteFrom('pending_login').execute()
    })

    it('is reset by an administrator, which ends all access (FACTOR-7)', async () => {
      const { username, browser } = await add()
      const { perform } = USER_OPERATIONS['reset-second-factor']
      await perform(makeAdmin(auth), { username }, {})
      assert.equal(await isSignedIn(browser), false)
      assert.equal((await auth.openBrowser().login(username)).headers.location, '/portal')
      const [record] = await findRecords(auth.store, { events: [{ kind: 'admin' }], limit: 1 })
      assert.match(record?.request ?? '', /reset-second-factor/)
      const again = await perform(makeAdmin(auth), { username }, {})
      assert.ok('reason' in again && again.reason === 'no-second-factor')
    })
  })
})
