import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { eachDatabaseIfThorough } from '../../../../test/support/databases.ts'
import { createAuditor, findRecords } from '../../../audit/index.ts'
import { setPassword } from '../../admin/accounts/change-sign-in.ts'
import { addUser } from '../../admin/accounts/change-user.ts'
import { makeCommandLine } from '../../admin/base/action.ts'
import { TestAuthServer } from '../../testing/test-auth-server.ts'

const ISSUED = 'issued by an admin'
const CHOSEN = 'correct horse battery'
const FORM = { next: CHOSEN, again: CHOSEN }

eachDatabaseIfThorough((_name, open) => {
  describe('a password that somebody else chose', () => {
    let auth: TestAuthServer
    let count = 0
    before(async () => {
      const store = await open()
      auth = await TestAuthServer.open(store, { audit: createAuditor({ store, failure: 'refuse' }) })
    })
    const makeAdmin = (onLoopback: boolean) => ({
      store: auth.store,
      audit: createAuditor({ store: auth.store, failure: 'refuse' }),
      clock: () => auth.time.now,
      rules: { ...auth.rules, onLoopback },
      ...makeCommandLine('test'),
    })
    /** A user with an issued password. */
    const add = async (onLoopback = false) => {
      const username = `user-${count++}`
      const fhirUser = 'Practitioner/practitioner-9'
      const user = { kind: 'clinician', username, displayName: 'Ada', fhirUser, password: ISSUED } as const
      await addUser(makeAdmin(onLoopback), user)
      return username
    }
    const isSignedIn = async (browser: ReturnType<TestAuthServer['openBrowser']>) =>
      (await browser.get('/portal')).statusCode === 200

    it('must be replaced before anything else (LOGIN-12)', async () => {
      const username = await add()
      const browser = auth.openBrowser()
      const first = await browser.login(username, ISSUED)
      assert.equal(first.headers.location, '/login/new-password')
      assert.equal(browser.cookies.has('sallyport-login'), false)
      assert.equal((await browser.get('/portal')).headers.location, '/login')
      assert.match((await auth.authorize(browser)).headers.location ?? '', /^\/login\?/)
      assert.match((await browser.get('/login/new-password')).body, /nor be a password that many people use/)
      assert.equal((await browser.post('/login/new-password', FORM)).headers.location, '/portal')
      assert.equal(await isSignedIn(browser), true)
      assert.equal((await auth.openBrowser().login(username, ISSUED)).statusCode, 401)
      assert.equal((await auth.openBrowser().login(username, CHOSEN)).headers.location, '/portal')
      const [changed] = await findRecords(auth.store, { events: [{ kind: 'admin' }], limit: 1 })
      assert.equal(changed?.reason, 'Password changed')
    })

    it('continues the authorization request that led to the sign-in (LOGIN-12)', async () => {
      const username = await add()
      const browser = auth.openBrowser()
      const login = await auth.authorize(browser, { scope: 'openid', launch: undefined })
      const interaction =
        new URL(login.headers.location ?? '', 'http://x').searchParams.get('interaction') ?? ''
      const next = await browser.post('/login', { username, password: ISSUED, interaction })
      assert.equal(next.headers.location, `/login/new-password?interaction=${interaction}`)
      const done = await browser.post('/login/new-password', { ...FORM, interaction })
      assert.equal(done.headers.location, `/oauth2/resume?interaction=${interaction}`)
    })

    it('is replaced by none that is short, common, the same, or contains the username (ACCOUNT-3)', async () => {
      const username = await add()
      await auth.store.db
        .updateTable('clinician')
        .set({ display_name: 'Dr. Robin Ahmadi' })
        .where('username', '=', username)
        .execute()
      const browser = auth.openBrowser()
      await browser.login(username, ISSUED)
      for (const [next, fault] of [
        ['short', /Use at least 8 characters/],
        ['Password1!', /many people use/],
        ['sunshine', /many people use/],
        ['MySallyport1', /many people use/],
        [`my ${username} key`, /without the username/],
        ['xK4-ahmadi-7q', /without a word of the display name/],
        [ISSUED, /another password than the current/],
      ] as const) {
        const refused = await browser.post('/login/new-password', { next, again: next })
        assert.equal(refused.statusCode, 400, next)
        assert.match(refused.body, fault)
      }
      const differs = await browser.post('/login/new-password', { next: CHOSEN, again: 'something else' })
      assert.match(differs.body, /The two entries differ/)
      assert.equal(await isSignedIn(browser), false)
    })

    it('cannot be replaced in another browser, later, twice, or after another change (LOGIN-12)', async () => {
      const username = await add()
      const [own, other] = [auth.openBrowser(), auth.openBrowser()]
      await own.login(username, ISSUED)
      assert.equal((await other.post('/login/new-password', FORM)).headers.location, '/login')
      const copy = auth.openBrowser()
      for (const [name, value] of own.cookies) copy.cookies.set(name, value)
      const both = await Promise.all([own, copy].map(it => it.post('/login/new-password', FORM)))
      assert.deepEqual(both.map(it => it.headers.location).toSorted(), ['/login', '/portal'])
      for (const change of ['time', 'password'] as const) {
        const name = await add()
        const late = auth.openBrowser()
        await late.login(name, ISSUED)
        if (change === 'time') auth.time.now += 10 * 60_000
        else await setPassword(makeAdmin(false), { username: name }, { password: 'yet another one' })
        assert.equal((await late.post('/login/new-password', FORM)).headers.location, '/login', change)
      }
    })

    it('is kept if a command set it on loopback, for tests (LOGIN-12)', async () => {
      const username = await add(true)
      assert.equal((await auth.openBrowser().login(username, ISSUED)).headers.location, '/portal')
    })
  })
})
