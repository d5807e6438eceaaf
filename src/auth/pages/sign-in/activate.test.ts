import assert from 'node:assert/strict'
import { Writable } from 'node:stream'
import { after, before, describe, it } from 'node:test'
import { eachDatabase } from '../../../../test/support/databases.ts'
import { createAuditor, findRecords } from '../../../audit/index.ts'
import { isFailure } from '../../../core/index.ts'
import { openStore, type Store } from '../../../store/index.ts'
import { createLogger } from '../../../web/http/index.ts'
import { setPassword } from '../../admin/accounts/change-sign-in.ts'
import { addUser, changeUser, removeUser } from '../../admin/accounts/change-user.ts'
import { linkUser } from '../../admin/accounts/link-user.ts'
import type { ChangedUser } from '../../admin/accounts/perform-on-user.ts'
import { USER_OPERATIONS } from '../../admin/accounts/user-operations.ts'
import { findUser } from '../../admin/accounts/users.ts'
import { type Admin, makeCommandLine } from '../../admin/base/action.ts'
import { addPhone } from '../../testing/second-factor.ts'
import { testSettings } from '../../testing/settings.ts'
import { TestAuthServer } from '../../testing/test-auth-server.ts'

const CHOSEN = 'correct horse battery'
const OTHER = 'purple monkey dishwasher'
const HOUR_MS = 3_600_000

eachDatabase((_name, _open, create) => {
  describe('an activation link', () => {
    let auth: TestAuthServer
    /** Another instance with the same database. */
    let second: TestAuthServer
    let admin: Admin
    let count = 0
    const stores: Store[] = []
    const audits: ReturnType<typeof createAuditor>[] = []
    const lines: string[] = []
    before(async () => {
      const url = await create()
      const destination = new Writable({
        write(chunk, _encoding, done) {
          lines.push(String(chunk))
          done()
        },
      })
      const openServer = async () => {
        const store = await openStore(url)
        stores.push(store)
        const audit = createAuditor({ store, failure: 'refuse' })
        audits.push(audit)
        return TestAuthServer.open(store, { audit, logger: createLogger({ level: 'trace', destination }) })
      }
      auth = await openServer()
      second = await openServer()
      admin = {
        store: auth.store,
        audit: createAuditor({ store: auth.store, failure: 'refuse' }),
        clock: () => auth.time.now,
        rules: auth.rules,
        settings: auth.settings,
        ...makeCommandLine('tester@test'),
      }
    })
    after(() => Promise.all(stores.map(store => store.close())))

    function getLink(user: ChangedUser | { readonly reason: string }): string {
      assert(!isFailure(user) && 'activationLink' in user)
      return user.activationLink?.url ?? assert.fail('no link')
    }
    /** A new user, and the secret of the link. */
    async function add(more: { readonly admin?: boolean } = {}) {
      const username = `user-${count++}`
      const fhirUser = 'Practitioner/practitioner-9'
      const user = { kind: 'clinician', username, displayName: 'Ada', fhirUser, withLink: true } as const
      const link = getLink(await addUser(admin, { ...user, ...more }))
      return { username, link, secret: new URL(link).hash.slice(1) }
    }
    const send = (link: string, next?: string, server = auth) =>
      server.openBrowser().post('/login/activate', { link, ...(next !== undefined && { next, again: next }) })
    const signIn = async (username: string, password: string) =>
      (await auth.openBrowser().login(username, password)).headers.location
    /** The records with this reason, newest first. */
    const readRecords = async (reason: string) => {
      for (const audit of audits) await audit.flush()
      const records = await findRecords(auth.store, { limit: 1000 })
      return records.filter(record => record.reason === reason)
    }
    const assertRefused = async (link: string, text: RegExp) => {
      for (const next of [undefined, CHOSEN]) {
        const refused = await send(link, next)
        assert.equal(refused.statusCode, 400)
        assert.match(refused.body, text)
        assert.doesNotMatch(refused.body, /user-\d|New password/)
        const isFinal = /already used|has expired/.test(refused.body)
        assert.equal(/<form [^>]*name="activation" hidden>/.test(refused.body), isFinal)
        assert.equal(/>Use another link</.test(refused.body), isFinal)
      }
    }

    it('has its secret behind the #, at the URL of the settings, and only its hash is stored (LOGIN-17)', async () => {
      const { link, secret } = await add()
      assert.match(link, /^http:\/\/localhost:9000\/login\/activate#[\w-]{43}$/)
      for (const store of stores)
        for (const { name } of await store.db.introspection.getTables()) {
          const rows = await store.db
            .selectFrom(name as 'clinician')
            .selectAll()
            .execute()
          assert.equal(JSON.stringify(rows).includes(secret), false, name)
        }
    })

    it('shows the username, takes a password once, and signs nobody in (LOGIN-17)', async () => {
      const { username, link, secret } = await add()
      assert.equal(await signIn(username, ''), undefined)
      const browser = auth.openBrowser()
      const form = await browser.post('/login/activate', { link: ` ${link} ` })
      assert.equal(form.statusCode, 200)
      assert.equal(form.headers['cache-control'], 'no-store')
      assert.match(form.body, new RegExp(`For the account <strong>${username}</strong> at Sallyport`))
      assert.match(form.body, new RegExp(`name="link" value="${secret}"`))
      const done = await browser.post('/login/activate', { link: secret, next: CHOSEN, again: CHOSEN })
      assert.equal(done.statusCode, 200)
      assert.match(done.body, /Password saved/)
      assert.equal(done.body.includes(secret), false)
      assert.deepEqual([...browser.cookies], [])
      const { id } = (await findUser(admin, { username })) ?? assert.fail()
      const [chosen] = await readRecords('Password chosen with an activation link')
      assert.deepEqual([chosen?.subject, chosen?.kind], [id, 'admin'])
      assert.equal(await signIn(username, CHOSEN), '/portal')
      await assertRefused(link, /already used.*report that at once/s)
      assert.equal((await readRecords('Activation link refused: used'))[0]?.subject, id)
      assert.equal(await signIn(username, CHOSEN), '/portal')
    })

    it('takes a password by the rules of every new password (ACCOUNT-3)', async () => {
      const { username, link } = await add()
      for (const [next, fault] of [
        ['short', /Use at least 8 characters/],
        ['Password1!', /many people use/],
        [`my ${username} key`, /without the username/],
      ] as const) {
        const refused = await send(link, next)
        assert.equal(refused.statusCode, 400)
        assert.match(refused.body, fault)
        assert.match(refused.body, /New password again/)
      }
      const differ = { link, next: CHOSEN, again: OTHER }
      assert.match((await auth.openBrowser().post('/login/activate', differ)).body, /The two entries differ/)
      assert.equal((await send(link, CHOSEN)).statusCode, 200)
    })

    it('is not used up by programs that only open it (LOGIN-17)', async () => {
      const { link, secret } = await add()
      for (const method of ['GET', 'HEAD'] as const)
        for (const url of ['/login/activate', `/login/activate?link=${secret}`])
          assert.equal((await auth.app.inject({ method, url })).statusCode, 200)
      assert.equal((await send(link)).statusCode, 200)
      assert.equal((await send(link)).statusCode, 200)
      assert.equal((await send(link, CHOSEN)).statusCode, 200)
    })

    it('takes one of two passwords that are sent at the same time to two instances (LOGIN-17)', async () => {
      for (let round = 0; round < 3; round++) {
        const { username, link } = await add()
        const sent = [CHOSEN, OTHER].map((next, at) => send(link, next, [auth, second][at]))
        const statuses = (await Promise.all(sent)).map(({ statusCode }) => statusCode)
        assert.deepEqual(statuses.toSorted(), [200, 400])
        const locations = [await signIn(username, CHOSEN), await signIn(username, OTHER)]
        assert.deepEqual(
          locations.map(location => location === '/portal'),
          statuses.map(status => status === 200),
        )
      }
    })

    const perform = (verb: 'end-sessions' | 'reset-second-factor', username: string) =>
      USER_OPERATIONS[verb].perform(admin, { username }, {})

    it('ends after its time, with the next link, and with a change of the account (LOGIN-17)', async () => {
      const late = await add()
      auth.time.now += 72 * HOUR_MS - 1
      assert.equal((await send(late.link)).statusCode, 200)
      auth.time.now += 1
      await assertRefused(late.link, /has expired/)
      assert.equal((await findUser(admin, late))?.activationEndsAt, undefined)
      const changes: Readonly<Record<string, (username: string) => Promise<unknown>>> = {
        next: username => setPassword(admin, { username }, { withLink: true }),
        password: username => setPassword(admin, { username }, { password: OTHER }),
        disabled: async username => {
          await changeUser(admin, { username }, { disabled: true })
          await changeUser(admin, { username }, { disabled: false })
        },
        'still disabled': username => changeUser(admin, { username }, { disabled: true }),
        removed: username => removeUser(admin, { username }),
        'another FHIR user': username => changeUser(admin, { username }, { fhirUser: 'Practitioner/other' }),
      }
      for (const [name, change] of Object.entries(changes)) {
        const { username, link } = await add()
        await change(username)
        await assertRefused(link, /does not work\.<[\s\S]*ask for a new one\./)
        assert.notEqual(await signIn(username, CHOSEN), '/portal', name)
      }
    })

    it('of a disabled account works after the account is enabled (LOGIN-17)', async () => {
      const { username } = await add()
      await changeUser(admin, { username }, { disabled: true })
      const link = getLink(await setPassword(admin, { username }, { withLink: true }))
      await assertRefused(link, /does not work\.<[\s\S]*ask for a new one\./)
      await changeUser(admin, { username }, { disabled: false })
      assert.equal((await send(link, CHOSEN)).statusCode, 200)
    })

    it('stays if an administrator ends the sign-ins (LOGIN-17)', async () => {
      const { username, link } = await add()
      await perform('end-sessions', username)
      assert.notEqual((await findUser(admin, { username }))?.activationEndsAt, undefined)
      assert.equal((await send(link, CHOSEN)).statusCode, 200)
    })

    it('replaces a password, ends the sign-ins, and leaves the second factor in force (LOGIN-17)', async () => {
      const username = `user-${count++}`
      await auth.addUser(username)
      const browser = await auth.logIn(username)
      await addPhone(auth, browser)
      const link = getLink(await setPassword(admin, { username }, { withLink: true }))
      const made = await readRecords('Activation link')
      assert(made.some(({ request }) => request === `clinician set-password ${username}`))
      assert.match(made[0]?.details ?? '', /"password":"removed"/)
      assert.equal((await browser.get('/portal')).headers.location, '/login')
      assert.equal(await signIn(username, 'sallyport'), undefined)
      assert.equal((await send(link, CHOSEN)).statusCode, 200)
      assert.equal(await signIn(username, CHOSEN), '/login/second-factor')
    })

    it('leaves apps the access that the administrator let them keep (LOGIN-17)', async () => {
      const username = `user-${count++}`
      await auth.addUser(username)
      await auth.addClient({ client_id: username })
      const client = { client_id: username, redirect_uri: `https://${username}.example/callback` }
      const scope = 'launch offline_access patient/*.rs'
      const code = await auth.getCode(await auth.logIn(username), { ...client, scope })
      const { refresh_token } = (await auth.exchange(code, client)).json()
      const kept = await setPassword(admin, { username }, { withLink: true, keepApps: true })
      assert.equal((await send(getLink(kept), CHOSEN)).statusCode, 200)
      assert.equal((await auth.refresh(refresh_token, { client_id: username })).statusCode, 200)
    })

    it('ends the sign-ins of a user who has no password, also those with a provider (LOGIN-17)', async () => {
      const { username } = await add()
      const user = (await findUser(admin, { username })) ?? assert.fail()
      await linkUser(admin, user, { issuer: 'https://idp.example', subject: username })
      const readVersion = () =>
        auth.store.db
          .selectFrom('clinician')
          .select('access_version')
          .where('id', '=', user.id)
          .executeTakeFirst()
      const before = await readVersion()
      await setPassword(admin, user, { withLink: true })
      assert.notDeepEqual(await readVersion(), before)
    })

    it('changes nothing about the sign-in of another user in the same browser (LOGIN-17)', async () => {
      const { username, link } = await add()
      const browser = await auth.logIn()
      const form = await browser.post('/login/activate', { link })
      assert.match(form.body, new RegExp(`<strong>${username}</strong>`))
      await browser.post('/login/activate', { link, next: CHOSEN, again: CHOSEN })
      assert.match((await browser.get('/account')).body, /Dr\. Robin Ahmadi/)
    })

    it('is refused from other sites, and while passwords are off (LOGIN-17)', async () => {
      const { link } = await add()
      const form = { link, next: CHOSEN, again: CHOSEN }
      for (const headers of [{ 'sec-fetch-site': 'cross-site' }, { origin: 'https://evil.example' }])
        assert.equal((await auth.openBrowser().post('/login/activate', form, headers)).statusCode, 403)
      auth.changeLogin({ ...testSettings.login, passwords: false })
      await assertRefused(link, /does not work\.<[\s\S]*ask for a new one\./)
      auth.changeLogin(testSettings.login)
      const off = { ...admin, rules: { ...admin.rules, passwords: false } }
      const refused = await setPassword(off, { username: 'clinician' }, { withLink: true })
      assert(isFailure(refused) && refused.code === 'conflict')
      assert.equal((await send(link, CHOSEN)).statusCode, 200)
    })

    it('cannot be guessed: unknown ones count as failed attempts of the network (LOGIN-17)', async () => {
      const guess = 'A'.repeat(43)
      const statuses: number[] = []
      await readRecords('')
      statuses.push((await send(guess)).statusCode)
      assert.equal((await readRecords('Activation link refused: unknown')).at(0)?.allowed, false)
      for (let at = 1; at < 12; at++) statuses.push((await send(guess)).statusCode)
      assert.deepEqual(new Set(statuses.slice(0, 10)), new Set([400]))
      assert.deepEqual(statuses.slice(10), [429, 429])
      const { count } = await auth.store.db
        .selectFrom('login_failure')
        .select(({ fn }) => fn.countAll().as('count'))
        .executeTakeFirstOrThrow()
      assert(Number(count) >= 20, 'each guess counts for the link and for the network')
      for (const nothing of ['', 'x', `${guess}A`, 'a'.repeat(50_000)])
        assert.equal((await send(nothing)).statusCode, 400, nothing.slice(0, 50))
      assert.equal((await send((await add()).link, CHOSEN)).statusCode, 200)
    })

    it('works whatever others of the network have tried (LOGIN-17)', async () => {
      const busy = await TestAuthServer.open(auth.store, { settings: { loginFailureLimitPerAddress: 3 } })
      busy.time.now = auth.time.now
      for (let at = 0; at < 4; at++) await send('B'.repeat(43), undefined, busy)
      assert.equal((await send('C'.repeat(43), undefined, busy)).statusCode, 429)
      const { link } = await add()
      assert.equal((await send(link, undefined, busy)).statusCode, 200)
      assert.equal((await send(link, CHOSEN, busy)).statusCode, 200)
    })

    it('is in no log, audit record or URL (LOGIN-17)', async () => {
      const { link, secret } = await add()
      const responses = [
        await send(link),
        await send(link, 'short'),
        await send(link, CHOSEN),
        await send(link),
      ]
      for (const { headers } of responses) assert.equal(JSON.stringify(headers).includes(secret), false)
      for (const { body } of responses)
        for (const [url] of body.matchAll(/(?:href|src|action)="[^"]*"/g))
          assert.equal(url.includes(secret), false)
      for (const audit of audits) await audit.flush()
      const records = await findRecords(auth.store, { limit: 1000 })
      assert(records.length > 20)
      for (const text of [JSON.stringify(records), lines.join('')]) {
        assert.equal(text.includes(secret), false)
        assert.equal(text.includes(CHOSEN), false)
      }
      assert.match(lines.join(''), /login\/activate/)
    })
  })
})
