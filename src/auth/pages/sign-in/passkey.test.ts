import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { eachDatabase } from '../../../../test/support/databases.ts'
import { createAuditor, findRecords } from '../../../audit/index.ts'
import { readCodes, readEnrolment } from '../../testing/second-factor.ts'
import { decodeClaims, TestAuthServer } from '../../testing/test-auth-server.ts'
import type { TestBrowser } from '../../testing/test-browser.ts'
import { readChallenge, TestPasskey } from '../../testing/test-passkey.ts'
import { findRelyingParty } from '../../users/factors/passkeys.ts'
import { NO_PASSWORD } from '../../users/passwords.ts'

const MFA = 'https://refeds.org/profile/mfa'

eachDatabase((_name, open) => {
  describe('a passkey', () => {
    let auth: TestAuthServer
    let count = 0
    before(async () => {
      const store = await open()
      auth = await TestAuthServer.open(store, { audit: createAuditor({ store, failure: 'refuse' }) })
    })

    async function addPasskey(browser: TestBrowser, passkey: TestPasskey, change: object = {}) {
      const { body } = await browser.get('/account/factors/add')
      const credential = passkey.create({ challenge: readChallenge(body), ...change })
      return browser.post('/account/factors/add', { enrolment: readEnrolment(body), credential })
    }
    /** A user with a passkey. */
    async function add() {
      const username = `user-${count++}`
      await auth.addUser(username)
      const browser = await auth.logIn(username)
      const passkey = new TestPasskey()
      assert.equal(readCodes(await addPasskey(browser, passkey)).length, 10)
      return { username, browser, passkey }
    }
    const startSecondStep = async (username: string) => {
      const browser = auth.openBrowser()
      assert.equal((await browser.login(username)).headers.location, '/login/second-factor')
      return { browser, challenge: readChallenge((await browser.get('/login/second-factor')).body) }
    }
    const start = async () => {
      const browser = auth.openBrowser()
      return { browser, challenge: readChallenge((await browser.get('/login/passkey')).body) }
    }
    const send = async (browser: TestBrowser, path: string, credential: string) =>
      (await browser.post(path, { credential })).headers.location
    const isSignedIn = async (browser: TestBrowser) => (await browser.get('/portal')).statusCode === 200

    it('signs in after the password, and without it, and is in amr and acr (FACTOR-8, FACTOR-6)', async () => {
      const { username, passkey } = await add()
      const second = await startSecondStep(username)
      assert.equal(await send(second.browser, '/login/second-factor', passkey.get(second)), '/portal')
      const first = await start()
      assert.equal(await send(first.browser, '/login/passkey', passkey.get(first)), '/portal')
      const [record] = await findRecords(auth.store, { events: [{ kind: 'login' }], limit: 1 })
      assert.equal(record?.reason, 'Signed in with a passkey')
      const decode = async (request = {}) => {
        const code = await auth.getCode(first.browser, request)
        const { acr, amr } = decodeClaims((await auth.exchange(code)).json().id_token)
        return { acr, amr }
      }
      assert.deepEqual(await decode(), { acr: 'phr', amr: ['pop', 'user', 'mfa'] })
      assert.deepEqual(await decode({ acr_values: MFA }), { acr: MFA, amr: ['pop', 'user', 'mfa'] })
    })

    for (const [name, change] of Object.entries({
      'another origin': { origin: 'https://evil.example' },
      'another port': { origin: 'http://localhost:9001' },
      'another server': { rpId: 'evil.example' },
      'a user who is not verified': { flags: 0x01 },
      'another challenge': { challenge: 'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA' },
    }))
      it(`with ${name} is refused, at each step (FACTOR-8)`, async () => {
        const { username, browser, passkey } = await add()
        assert.equal((await addPasskey(browser, new TestPasskey(), change)).statusCode, 400)
        const second = await startSecondStep(username)
        const wrong = passkey.get({ ...second, ...change })
        assert.equal(await send(second.browser, '/login/second-factor', wrong), undefined)
        const first = await start()
        const other = passkey.get({ ...first, ...change })
        assert.equal(await send(first.browser, '/login/passkey', other), undefined)
        assert.deepEqual(await Promise.all([second, first].map(it => isSignedIn(it.browser))), [false, false])
      })

    it('answers each challenge once, in the browser that got it (FACTOR-8)', async () => {
      const { username, passkey } = await add()
      for (const [path, begin] of [
        ['/login/second-factor', () => startSecondStep(username)],
        ['/login/passkey', start],
      ] as const) {
        const own = await begin()
        const response = passkey.get(own)
        const other = await begin()
        assert.notEqual(
          await send(other.browser, path, response),
          '/portal',
          'a challenge of another browser',
        )
        const copy = auth.openBrowser()
        for (const [name, value] of own.browser.cookies) copy.cookies.set(name, value)
        const both = await Promise.all([own.browser, copy].map(it => send(it, path, response)))
        assert.equal(both.filter(location => location === '/portal').length, 1, path)
        assert.notEqual(await send(own.browser, path, response), '/portal', 'again')
        auth.time.now += 300_000
      }
    })

    it('of another account does not count, and a passkey belongs to one account (FACTOR-8)', async () => {
      const [own, other] = [await add(), await add()]
      const second = await startSecondStep(own.username)
      assert.equal(await send(second.browser, '/login/second-factor', other.passkey.get(second)), undefined)
      assert.equal((await addPasskey(own.browser, other.passkey)).statusCode, 409)
      const unknown = await start()
      assert.equal(await send(unknown.browser, '/login/passkey', new TestPasskey().get(unknown)), undefined)
      const garbage = await start()
      for (const text of ['', '{', '[]', '{"id":1}', `{"id":"${own.passkey.id}"}`])
        assert.equal(await send(garbage.browser, '/login/passkey', text), undefined, text)
    })

    it('whose counter goes back is refused: somebody may have copied it (FACTOR-8)', async () => {
      const { passkey } = await add()
      passkey.count = 7
      const first = await start()
      assert.equal(await send(first.browser, '/login/passkey', passkey.get(first)), '/portal')
      passkey.count = 6
      const second = await start()
      assert.equal(await send(second.browser, '/login/passkey', passkey.get(second)), undefined)
      passkey.count = 8
      const third = await start()
      assert.equal(await send(third.browser, '/login/passkey', passkey.get(third)), '/portal')
    })

    it('signs in no disabled user, and nobody whose password a directory checks (FACTOR-8)', async () => {
      for (const change of [{ disabled: true }, { password_hash: NO_PASSWORD }]) {
        const { username, passkey } = await add()
        await auth.store.db.updateTable('clinician').set(change).where('username', '=', username).execute()
        const { browser, challenge } = await start()
        assert.equal(await send(browser, '/login/passkey', passkey.get({ challenge })), undefined)
        assert.equal(await isSignedIn(browser), false)
      }
    })

    it('is refused with an id that no database stores (FACTOR-8)', async () => {
      const { browser } = await start()
      for (const id of ['\0', 'a\0b', '\ud800', '']) {
        const response = await browser.post('/login/passkey', { credential: JSON.stringify({ id }) })
        assert.equal(response.statusCode, 401, JSON.stringify(id))
      }
    })

    it('is offered where browsers have passkeys: with https or on localhost, not at an IP address', () => {
      const find = (issuerUrl: string) => findRelyingParty({ issuerUrl })?.id
      assert.deepEqual(
        [
          'https://auth.ehr.example/x',
          'http://localhost:9000',
          'http://127.0.0.1:9000',
          'https://[::1]',
          'http://ehr.test',
        ].map(find),
        ['auth.ehr.example', 'localhost', undefined, undefined, undefined],
      )
    })
  })
})
