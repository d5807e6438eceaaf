import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { before, describe, it } from 'node:test'
import { eachDatabase } from '../../../test/support/databases.ts'
import { createAuditor, findRecords } from '../../audit/index.ts'
import { sha256 } from '../../store/index.ts'
import { LIMITS } from '../base/limits.ts'
import { TestAuthServer } from '../testing/test-auth-server.ts'

eachDatabase((_name, open) => {
  describe('POST /login with many wrong passwords of one account', () => {
    let auth: TestAuthServer
    before(async () => {
      const store = await open()
      auth = await TestAuthServer.open(store, { audit: createAuditor({ store }) })
    })

    interface From {
      readonly address: string
      readonly browser?: string | undefined
      readonly at?: TestAuthServer
    }

    const post = (username: string, password: string, { address, browser, at = auth }: From) =>
      at.app.inject({
        method: 'POST',
        url: '/login',
        remoteAddress: address,
        payload: `${new URLSearchParams({ username, password })}`,
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        cookies: browser === undefined ? {} : { 'sallyport-browser': browser },
      })

    /** Two guesses, from two networks, and rows like those of the others, which take long. */
    async function guess(username: string, count: number, more: Omit<From, 'address'> = {}): Promise<void> {
      for (const address of ['10.5.1.1', '10.5.2.1'])
        assert.equal((await post(username, 'wrong', { address, ...more })).statusCode, 401)
      const { id: clinician_id } = await findAccount(username)
      const { db } = auth.store
      const rows = await db
        .selectFrom('wrong_password')
        .selectAll()
        .where('clinician_id', '=', clinician_id)
        .orderBy('at', 'desc')
        .execute()
      const copies = Array.from({ length: count - 2 }, () => ({ ...rows[0], id: randomUUID() }))
      if (rows[0])
        await db
          .insertInto('wrong_password')
          .values(copies as typeof rows)
          .execute()
      auth.time.now += 600_000
    }

    async function findAccount(username: string) {
      return auth.store.db
        .selectFrom('clinician')
        .selectAll()
        .where('username', '=', username)
        .executeTakeFirstOrThrow()
    }

    const readCookie = (response: Awaited<ReturnType<typeof post>>) =>
      response.cookies.find(({ name }) => name === 'sallyport-browser')?.value

    it('refuses the right password like a wrong one after 50 from all addresses together, on every instance (LOGIN-16)', async () => {
      await auth.addUser('hunted')
      const home = await post('hunted', 'sallyport', { address: '10.9.0.1' })
      const browser = readCookie(home)
      assert.equal(home.statusCode, 302)
      await guess('hunted', LIMITS.wrongPasswords - 1)
      const last = await post('hunted', 'sallyport!', { address: '10.6.0.0' })
      assert.equal(last.statusCode, 401)
      const audit = createAuditor({ store: auth.store })
      const other = await TestAuthServer.open(auth.store, { audit })
      for (const at of [auth, other]) {
        const refused = await post('hunted', 'sallyport', { address: '10.6.0.1', at })
        const unknown = await post('nobody', 'sallyport', { address: '10.6.0.2', at })
        assert.equal(refused.statusCode, 401)
        assert.equal(refused.body.replaceAll('hunted', 'nobody'), unknown.body)
      }
      const records = await findRecords(auth.store, {
        users: ['Practitioner/practitioner-of-hunted'],
        limit: 100,
      })
      assert.ok(
        records.some(({ reason }) => reason === 'The account is locked after too many wrong passwords'),
      )
      // Whoever guesses cannot lock out the user, who signs in where the user did before.
      assert.equal((await post('hunted', 'sallyport', { address: '10.9.0.1' })).statusCode, 302)
      assert.equal((await post('hunted', 'sallyport', { address: '10.7.0.1', browser })).statusCode, 302)
      assert.equal((await post('hunted', 'sallyport', { address: '10.6.0.3' })).statusCode, 401)
    })

    it('counts the wrong passwords in a row, and starts again after a sign-in (LOGIN-16)', async () => {
      await auth.addUser('careless')
      for (const address of ['10.6.1.1', '10.6.1.2']) {
        await guess('careless', LIMITS.wrongPasswords - 1)
        assert.equal((await post('careless', 'sallyport', { address })).statusCode, 302)
      }
    })

    it('counts a known browser by itself (LOGIN-16)', async () => {
      await auth.addUser('shared')
      const browser = readCookie(await post('shared', 'sallyport', { address: '10.9.1.1' }))
      await guess('shared', LIMITS.wrongPasswords, { browser })
      assert.equal((await post('shared', 'sallyport', { address: '10.6.2.1', browser })).statusCode, 401)
      assert.equal((await post('shared', 'sallyport', { address: '10.6.2.1' })).statusCode, 302)
    })

    it('does not know a browser by the cookie of another user, or by one that the server did not make (LOGIN-16)', async () => {
      await auth.addUser('victim')
      const own = readCookie(await post('shared', 'sallyport', { address: '10.9.2.1' }))
      const planted = ['planted', 'A'.repeat(43), `${'B'.repeat(43)}.${own}`]
      for (const [at, browser] of planted.entries()) {
        const response = await post('victim', 'sallyport', { address: `10.9.3.${at}`, browser })
        assert.equal(response.statusCode, 302)
        const made = readCookie(response) ?? ''
        assert.match(made, /^[\w-]{43}(\.|$)/)
        assert.notEqual(made.slice(0, 43), browser.slice(0, 43))
      }
      await guess('victim', LIMITS.wrongPasswords)
      for (const browser of [own, 'made-up', ...planted])
        assert.equal((await post('victim', 'sallyport', { address: '10.6.3.1', browser })).statusCode, 401)
    })

    it('does not know a browser by the cookie of 0.3.0, which anybody could have planted (LOGIN-16)', async () => {
      await auth.addUser('upgraded')
      const { id: clinician_id } = await findAccount('upgraded')
      const planted = 'C'.repeat(43)
      const row = { clinician_id, sender_hash: sha256(`browser ${planted}`), seen_at: auth.time.now }
      await auth.store.db.insertInto('known_sender').values(row).execute()
      await guess('upgraded', LIMITS.wrongPasswords)
      const from = { address: '10.6.3.2', browser: planted }
      assert.equal((await post('upgraded', 'sallyport', from)).statusCode, 401)
    })

    it('gives a browser a new cookie at each sign-in, and keeps those of others who share it (LOGIN-16)', async () => {
      await auth.addUser('early')
      await auth.addUser('late')
      const sign = async (username: string, browser: string | undefined, address: string) => {
        const response = await post(username, 'sallyport', { address, browser })
        assert.equal(response.statusCode, 302)
        return readCookie(response) ?? ''
      }
      const first = await sign('early', undefined, '10.9.4.1')
      const both = await sign('late', first, '10.9.4.1')
      const renewed = await sign('early', both, '10.9.4.1')
      assert.equal(new Set([first, ...both.split('.'), ...renewed.split('.')]).size, 3)
      assert.equal(renewed.split('.').length, 2)
      for (const username of ['early', 'late']) await guess(username, LIMITS.wrongPasswords)
      const stale = { address: '10.6.8.1', browser: first }
      assert.equal((await post('early', 'sallyport', stale)).statusCode, 401, 'a former cookie')
      const last = await sign('late', renewed, '10.6.8.2')
      await sign('early', last, '10.6.8.3')
    })

    it('keeps no browser of its user out, whatever others of its network try (LOGIN-6)', async () => {
      await auth.addUser('neighbour')
      const address = '10.9.5.1'
      const browser = readCookie(await post('neighbour', 'sallyport', { address }))
      for (let count = 0; count < 10; count++) await post('neighbour', 'wrong', { address })
      assert.equal((await post('neighbour', 'sallyport', { address })).statusCode, 429)
      assert.equal((await post('neighbour', 'sallyport', { address, browser })).statusCode, 302)
      const busy = await TestAuthServer.open(auth.store, { settings: { loginFailureLimitPerAddress: 5 } })
      busy.time.now = auth.time.now
      const known = readCookie(await post('neighbour', 'sallyport', { address: '10.9.5.2', at: busy }))
      for (let count = 0; count < 5; count++)
        await post(`spray-${count}`, 'wrong', { address: '10.9.5.2', at: busy })
      const there = { address: '10.9.5.2', at: busy }
      assert.equal((await post('neighbour', 'sallyport', there)).statusCode, 429)
      assert.equal((await post('neighbour', 'sallyport', { ...there, browser: known })).statusCode, 302)
    })

    it('says after some failures what else could be the reason, for any username', async () => {
      for (const username of ['clinician', 'nobody']) {
        const bodies: string[] = []
        for (let at = 0; at < 3; at++)
          bodies.push((await post(username, 'wrong', { address: '10.6.4.1' })).body)
        assert.deepEqual(
          bodies.map(body => body.includes('An administrator can unlock it')),
          [false, false, true],
        )
      }
    })

    it('is unlocked by an administrator, whose page says since when and from where (LOGIN-16, ADMIN-24)', async () => {
      await auth.addUser('ada', { admin: true })
      await auth.addUser('locked')
      await guess('locked', LIMITS.wrongPasswords)
      const { id } = await findAccount('locked')
      const admin = await auth.logIn('ada')
      assert.match((await admin.get('/admin')).body, /accounts are locked after too many wrong passwords: /)
      const list = (await admin.get('/admin/clinicians?state=locked')).body
      assert.match(list, /Dr\. locked/)
      assert.doesNotMatch(list, /<code>ada<\/code>/)
      const page = (await admin.get(`/admin/clinicians/${id}`)).body
      assert.match(
        page,
        /Wrong passwords[\s\S]*50 since the last sign-in[\s\S]*mostly from 10\.5\.[12]\.1[\s\S]*Locked since/,
      )
      assert.match((await admin.get(`/admin/clinicians/${id}/unlock`)).body, /Unlock Dr\. locked\?/)
      assert.equal((await admin.post(`/admin/clinicians/${id}/unlock`, {})).statusCode, 303)
      assert.equal((await post('locked', 'sallyport', { address: '10.6.5.1' })).statusCode, 302)
      const records = await findRecords(auth.store, { events: [{ kind: 'admin' }], limit: 5 })
      assert.ok(records.some(({ request }) => request === 'clinician unlock locked'))
      assert.equal((await admin.post(`/admin/clinicians/${id}/unlock`, {})).statusCode, 409)
    })

    it('is unlocked by a new password, which the user can choose where the user is known (LOGIN-16)', async () => {
      await auth.addUser('own')
      const browser = await auth.logIn('own')
      await guess('own', LIMITS.wrongPasswords)
      const next = 'quite another phrase'
      const form = { current: 'sallyport', next, again: next }
      assert.equal((await browser.post('/account/password', form)).statusCode, 303)
      assert.equal((await post('own', next, { address: '10.6.6.1' })).statusCode, 302)
    })

    it('does not count what is tried at an account without a password', async () => {
      await auth.addUser('federated', { password_hash: '' })
      await guess('federated', 3)
      const rows = await auth.store.db
        .selectFrom('wrong_password')
        .innerJoin('clinician', 'clinician.id', 'wrong_password.clinician_id')
        .select('username')
        .where('username', '=', 'federated')
        .execute()
      assert.deepEqual(rows, [])
    })
  })
})
