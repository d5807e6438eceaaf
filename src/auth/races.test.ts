import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, it } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import type { Transaction } from 'kysely'
import { eachDatabase } from '../../test/support/databases.ts'
import { createAuditor } from '../audit/index.ts'
import { openStore, type Schema, type Store, sha256 } from '../store/index.ts'
import { listGrants } from './admin/access/grants.ts'
import { endSessions, setPassword } from './admin/accounts/change-sign-in.ts'
import { changeUser } from './admin/accounts/change-user.ts'
import { linkUser, unlinkUser } from './admin/accounts/link-user.ts'
import { findUser } from './admin/accounts/users.ts'
import { changeClient, removeClient } from './admin/apps/clients.ts'
import { type Admin, makeCommandLine } from './admin/base/action.ts'
import { readForm } from './testing/read-form.ts'
import { SigningClient } from './testing/signing-client.ts'
import { readRedirect, TestAuthServer, VERIFIER } from './testing/test-auth-server.ts'
import { TestBrowser } from './testing/test-browser.ts'
import { hashPassword } from './users/passwords.ts'
import { storeAccount } from './users/sign-in/account.ts'

const TIMES = 50

// Two instances with separate connections to one database get the same request at the same time.
eachDatabase((_name, _open, create) => {
  describe('50 concurrent requests on two instances', () => {
    let houses: readonly [TestAuthServer, TestAuthServer]
    let client: SigningClient
    const stores: Store[] = []
    after(() => Promise.all(stores.map(store => store.close())))
    before(async () => {
      const url = await create()
      const first = await TestAuthServer.open(await openOn(url))
      houses = [first, await TestAuthServer.open(await openOn(url))]
      client = new SigningClient('back-end', first.time)
      await first.addClient({
        client_id: 'back-end',
        auth_method: 'private_key_jwt',
        jwks: client.jwks,
        scope: 'system/*.rs',
      })
    })

    async function openOn(url: string): Promise<Store> {
      const store = await openStore(url)
      stores.push(store)
      return store
    }
    const both = <T>(act: (auth: TestAuthServer, at: number) => Promise<T>) =>
      Promise.all(Array.from({ length: TIMES }, (_, at) => act(houses[at % 2 ? 1 : 0], at)))
    /** A browser with the cookies of `browser` at an instance. */
    const at = (auth: TestAuthServer, browser: TestBrowser) => {
      const same = new TestBrowser(auth.app)
      for (const [cookie, value] of browser.cookies) same.cookies.set(cookie, value)
      return same
    }

    it('exchange one code once, and a second use revokes the tokens (TOKEN-5)', async () => {
      const [first] = houses
      const code = await first.getCode(await first.logIn())
      const responses = await both(auth => auth.exchange(code))
      const won = responses.filter(response => response.statusCode === 200)
      assert.equal(won.length, 1)
      const lost = responses.filter(response => response.statusCode !== 200)
      assert.deepEqual(new Set(lost.map(response => response.json().error)), new Set(['invalid_grant']))
      const refreshed = await first.refresh(won[0]?.json().refresh_token)
      assert.equal(refreshed.json().error, 'invalid_grant')
    })

    it('get one code for one launch token (LAUNCH-8)', async () => {
      const [first] = houses
      const browser = await first.logIn()
      const launch = await first.launch(browser)
      const answers = await both(async auth =>
        readRedirect(await auth.authorize(at(auth, browser), { launch })),
      )
      assert.equal(answers.filter(answer => answer.code !== undefined).length, 1)
      const errors = answers.flatMap(answer => answer.error ?? [])
      assert.deepEqual(new Set(errors), new Set(['invalid_request']))
    })

    it('authenticate once with one assertion (CLIENT-6)', async () => {
      const form = { grant_type: 'client_credentials', scope: 'system/*.rs', ...client.makeProof() }
      const responses = await both(auth => auth.requestToken(form))
      assert.equal(responses.filter(response => response.statusCode === 200).length, 1)
      const errors = responses.flatMap(response => response.json().error ?? [])
      assert.deepEqual(new Set(errors), new Set(['invalid_client']))
    })

    it('rotate one refresh token once, and every successful retry returns the same successor (REFRESH-2)', async () => {
      const [first] = houses
      const { refresh_token: token } = (await first.exchange(await first.getCode(await first.logIn()))).json()
      const responses = await both(auth => auth.refresh(token))
      const answered = responses.filter(response => response.statusCode === 200)
      const successors = new Set(answered.map(response => response.json().refresh_token))
      assert.equal(successors.size, 1)
      assert.ok(answered.length >= 1)
      const live = await first.store.db
        .selectFrom('refresh_token')
        .innerJoin('grant', 'grant.id', 'refresh_token.grant_id')
        .select('token_hash')
        .where('used_at', 'is', null)
        .where('grant.revoked_at', 'is', null)
        .where('grant.id', '=', grantIdOf(answered[0]?.json().access_token))
        .execute()
      assert.equal(live.length, 1)
    })

    it('exchange one code once even if one of them has a wrong verifier', async () => {
      const [first] = houses
      const code = await first.getCode(await first.logIn())
      const responses = await both((auth, at) =>
        auth.exchange(code, { code_verifier: at % 3 === 0 ? `${VERIFIER}x` : VERIFIER }),
      )
      assert.equal(responses.filter(response => response.statusCode === 200).length, 1)
    })
  })
})

/** A store on which another instance commits `change` just before the next transaction of this one. */
function interrupt(store: Store): { readonly store: Store; change?: (() => Promise<unknown>) | undefined } {
  const transaction = () => ({
    execute: async (work: (trx: Transaction<Schema>) => Promise<unknown>) => {
      const { change } = interrupted
      interrupted.change = undefined
      await change?.()
      return store.db.transaction().execute(work)
    },
  })
  const db = new Proxy(store.db, {
    get: (target, name) => {
      if (name === 'transaction') return transaction
      const value = Reflect.get(target, name)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
  const interrupted: ReturnType<typeof interrupt> = { store: { ...store, db } }
  return interrupted
}

eachDatabase((_name, open) => {
  describe('a change that is committed while a request runs', () => {
    const scope = 'launch offline_access patient/*.rs'
    const app = { client_id: 'app', redirect_uri: 'https://app.example/callback', scope }
    let interrupted: ReturnType<typeof interrupt>
    let auth: TestAuthServer
    let admin: Admin
    let browser: TestBrowser
    const user = { username: 'ada' } as const
    before(async () => {
      interrupted = interrupt(await open())
      const { store } = interrupted
      const audit = createAuditor({ store })
      auth = await TestAuthServer.open(store, { audit })
      admin = {
        store,
        audit,
        clock: () => auth.time.now,
        rules: auth.rules,
        ...makeCommandLine('tester@test'),
      }
      await auth.addClient({ client_id: 'app' })
    })
    beforeEach(async () => {
      await auth.store.db.deleteFrom('clinician').where('username', '=', 'ada').execute()
      await auth.addUser('ada')
      browser = await auth.logIn('ada')
    })

    const countGrants = async () => {
      const { id = '' } = (await findUser(admin, user)) ?? {}
      return (await listGrants(admin, { userIds: [id], limit: 10 })).items.length
    }
    const authorize = async (during: () => Promise<unknown>, client = app) => {
      const launch = await auth.launch(browser, { clientId: client.client_id })
      interrupted.change = during
      return auth.authorize(browser, { ...client, launch })
    }
    const resetPassword = () => setPassword(admin, user, { password: 'another password' })

    for (const [name, change] of [
      ['refuses a sign-in after the password was changed (LOGIN-11)', resetPassword],
      [
        'refuses a sign-in after the user was disabled (LOGIN-11)',
        () => changeUser(admin, user, { disabled: true }),
      ],
    ] as const)
      it(name, async () => {
        interrupted.change = change
        assert.equal((await auth.openBrowser().login('ada')).statusCode, 401)
        assert.equal((await findUser(admin, user))?.signIns, 0)
      })

    it('does not refuse a sign-in if only the hash of the same password was replaced (LOGIN-11)', async () => {
      const password_hash = await hashPassword('sallyport', 5)
      interrupted.change = () =>
        auth.store.db.updateTable('clinician').set({ password_hash }).where('username', '=', 'ada').execute()
      assert.equal((await auth.openBrowser().login('ada')).statusCode, 302)
    })

    it('refuses to replace a password that an administrator set (ACCOUNT-1)', async () => {
      interrupted.change = resetPassword
      const form = { current: 'sallyport', next: 'chosen by ada', again: 'chosen by ada' }
      assert.equal((await browser.post('/account/password', form)).statusCode, 401)
      assert.equal((await auth.openBrowser().login('ada', 'another password')).statusCode, 302)
    })

    it('ends a sign-in with the old password that completes before a new one is stored (ACCOUNT-1)', async () => {
      const other = auth.openBrowser()
      interrupted.change = () => other.login('ada')
      const form = { current: 'sallyport', next: 'chosen by ada', again: 'chosen by ada' }
      assert.equal((await browser.post('/account/password', form)).statusCode, 303)
      assert.equal((await other.get('/manage')).headers.location, '/login')
    })

    it('stores no sign-in with a provider whose link was removed (LOGIN-11)', async () => {
      const link = { issuer: 'https://idp.example', subject: 's' }
      await linkUser(admin, user, link)
      const { id } = await auth.store.db
        .selectFrom('clinician')
        .select('id')
        .where('username', '=', 'ada')
        .executeTakeFirstOrThrow()
      const account = {
        ...link,
        kind: 'linked' as const,
        userId: id,
        username: 'ada' as const,
        displayName: 'Ada' as const,
        fhirUserId: 'ada',
        admin: false,
      }
      const store = () =>
        auth.store.db.transaction().execute(trx => storeAccount(trx, account, auth.time.now))
      assert.equal((await store())?.id, id)
      await changeUser(admin, user, { disabled: true })
      assert.equal(await store(), undefined)
      await changeUser(admin, user, { disabled: false })
      await unlinkUser(admin, user, link)
      assert.equal(await store(), undefined)
    })

    it("refuses an administrator's change after the role was taken away (ADMIN-10)", async () => {
      await auth.store.db
        .updateTable('clinician')
        .set({ admin: true })
        .where('username', '=', 'ada')
        .execute()
      const { id } = await auth.store.db
        .selectFrom('clinician')
        .select('id')
        .where('username', '=', 'clinician')
        .executeTakeFirstOrThrow()
      for (const [change, message] of [
        [{ auditor: true }, /Auditors change nothing/],
        [{ admin: false, auditor: false }, /You are not an administrator/],
      ] as const) {
        await changeUser(admin, user, { admin: true })
        interrupted.change = () => changeUser(admin, user, change)
        const response = await browser.post(`/admin/clinicians/${id}/reset-password`, {})
        assert.equal(response.statusCode, 403)
        assert.match(response.body, message)
      }
      assert.equal((await auth.openBrowser().login()).statusCode, 302)
    })

    it('refuses a change through the administration API after its client was removed (ADMIN-10)', async () => {
      const client = { client_id: 'console', client_secret: 's', scope: 'sallyport/admin' }
      await auth.addClient({
        client_id: 'console',
        auth_method: 'client_secret',
        secret_hash: sha256('s'),
        scope: 'sallyport/admin',
        redirect_uris: '[]',
        launch_url: null,
      })
      const tokens = await auth.requestToken({ grant_type: 'client_credentials', ...client })
      interrupted.change = () => removeClient(admin, 'console')
      const { statusCode } = await auth.app.inject({
        method: 'PATCH',
        url: '/admin/api/clients/app',
        payload: { client_name: 'Renamed' },
        headers: { authorization: `Bearer ${tokens.json().access_token}` },
      })
      assert.equal(statusCode, 403)
      const { name } = await auth.store.db
        .selectFrom('client')
        .select('name')
        .where('client_id', '=', 'app')
        .executeTakeFirstOrThrow()
      assert.equal(name, 'app')
    })

    it('gives an app no access after the end of all sessions (AUTHORIZE-13)', async () => {
      const response = await authorize(() => endSessions(admin, user))
      assert.match(response.headers.location ?? '', /^\/login\?/)
      assert.equal(await countGrants(), 0)
    })

    it('revokes the access that is stored first (AUTHORIZE-13)', async () => {
      const { recordIn } = admin.audit
      let ended: Promise<unknown> | undefined
      Object.assign(admin.audit, {
        recordIn: async (...record: Parameters<typeof recordIn>) => {
          await recordIn.apply(admin.audit, record)
          if (record[1]?.kind !== 'authorize') return
          ended = endSessions(admin, user)
          await pause(50)
        },
      })
      const response = await authorize(async () => undefined)
      Object.assign(admin.audit, { recordIn })
      await ended
      assert.ok(readRedirect(response).code)
      assert.equal(await countGrants(), 0)
    })

    it('grants the scopes that the app has now (AUTHORIZE-13)', async () => {
      const response = await authorize(() => changeClient(admin, 'app', { scope: 'launch patient/*.rs' }))
      const { code = '' } = readRedirect(response)
      const { client_id, redirect_uri } = app
      const tokens = (await auth.exchange(code, { client_id, redirect_uri })).json()
      assert.equal(tokens.scope, 'launch patient/*.rs')
    })

    it('refuses an app that was removed (AUTHORIZE-13)', async () => {
      await auth.addClient({ client_id: 'gone' })
      const gone = { ...app, client_id: 'gone', redirect_uri: 'https://gone.example/callback' }
      const response = await authorize(() => removeClient(admin, 'gone'), gone)
      assert.equal(response.statusCode, 400)
      assert.match(response.body, /The app is no longer registered/)
    })

    it('lets only the first decision on the consent page count (CONSENT-5)', async () => {
      await auth.addClient({ client_id: 'asks', first_party: false })
      const asks = { ...app, client_id: 'asks', redirect_uri: 'https://asks.example/callback' }
      const asked = await authorize(async () => undefined, asks)
      const form = readForm((await browser.get(asked.headers.location ?? '')).body)
      const decide = (decision: string) => browser.post('/oauth2/consent', `${form}&decision=${decision}`)
      let allowed: Awaited<ReturnType<typeof decide>> | undefined
      interrupted.change = async () => {
        allowed = await decide('allow')
      }
      const denied = await decide('deny')
      assert.ok(readRedirect(allowed ?? assert.fail()).code)
      assert.equal(denied.statusCode, 400)
      assert.match(denied.body, /This request was already answered/)
    })
  })
})

function grantIdOf(accessToken: unknown): string {
  const claims = JSON.parse(Buffer.from(String(accessToken).split('.')[1] ?? '', 'base64url').toString())
  return String(claims.jti).split('.')[0] ?? ''
}
