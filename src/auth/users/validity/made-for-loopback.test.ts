import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { eachDatabase } from '../../../../test/support/databases.ts'
import { createAuditor } from '../../../audit/index.ts'
import type { Store } from '../../../store/index.ts'
import { setPassword } from '../../admin/accounts/change-sign-in.ts'
import { addUser } from '../../admin/accounts/change-user.ts'
import { approveClient } from '../../admin/apps/clients.ts'
import { makeCommandLine } from '../../admin/base/action.ts'
import { computeRevocationKey } from '../../oauth/revocation/list.ts'
import { SigningClient } from '../../testing/signing-client.ts'
import { decodeClaims, TestAuthServer } from '../../testing/test-auth-server.ts'
import { seedSampleAccounts } from '../accounts.ts'
import { describeMadeForLoopback } from './made-for-loopback.ts'

const APP = { client_id: 'app', redirect_uri: 'https://app.example/callback' }
const SCOPE = 'launch offline_access patient/*.rs'
const SAMPLES = ['clinician', 'admin', 'alba', 'mira'] as const

eachDatabase((_name, open) => {
  describe('a server with a public URL, on the data of a server on loopback', () => {
    let store: Store
    let local: TestAuthServer
    let web: TestAuthServer
    let backend: SigningClient
    let apps: Readonly<Record<'registered' | 'developed' | 'added', string>>
    const tokens: Record<string, string> = {}
    const statusOf = async (server: TestAuthServer, username: string, password = 'sallyport') =>
      (await server.openBrowser().login(username, password)).statusCode
    const asCommand = (server: TestAuthServer) => ({
      store,
      audit: createAuditor({ store }),
      clock: () => server.time.now,
      rules: server.rules,
      ...makeCommandLine('tester@test'),
    })
    const isKnown = async (server: TestAuthServer, client_id: string) =>
      !/The app is not registered/.test((await server.authorize(server.openBrowser(), { client_id })).body)
    const requestBackendToken = (server: TestAuthServer) =>
      server.requestToken({ grant_type: 'client_credentials', scope: 'system/*.rs', ...backend.makeProof() })

    before(async () => {
      store = await open()
      local = await TestAuthServer.open(store, { settings: { lab: true } })
      await seedSampleAccounts(store)
      const person = { kind: 'clinician', displayName: 'Ada', fhirUser: 'Practitioner/a' } as const
      await addUser(asCommand(local), { ...person, username: 'ada', password: 'correct horse' })
      const metadata = {
        token_endpoint_auth_method: 'private_key_jwt',
        grant_types: ['client_credentials'],
        scope: 'system/*.cruds',
        jwks: { keys: [new SigningClient('', local.time).jwk] },
      }
      const registered = await local.app.inject({
        method: 'POST',
        url: '/oauth2/register',
        payload: metadata,
      })
      backend = new SigningClient(registered.json().client_id, local.time)
      tokens.backend = (await requestBackendToken(local)).json().access_token
      const form = {
        name: 'X',
        auth_method: 'none',
        redirect_uris: 'https://x.example/',
        scope: 'launch patient/*.rs',
      }
      const [clinician, admin] = [await local.logIn(), await local.logIn('admin')]
      await clinician.post('/apps/new', { ...form, client_id: 'developed' })
      await admin.post('/admin/apps/new', { ...form, client_id: 'added' })
      await admin.post('/admin/clinicians/new', {
        kind: 'clinician',
        username: 'bob',
        displayName: 'Bob',
        fhirUser: 'Practitioner/b',
        confirmed: 'Practitioner/b',
      })
      apps = { registered: backend.id, developed: 'developed', added: 'added' }
      await local.addClient({ client_id: 'app', scope: SCOPE })
      for (const username of ['clinician', 'ada']) {
        const browser = local.openBrowser()
        await browser.login(username, username === 'ada' ? 'correct horse' : 'sallyport')
        const code = await local.getCode(browser, { ...APP, scope: SCOPE })
        const issued = (await local.exchange(code, APP)).json()
        tokens[username] = issued.refresh_token
        tokens[`${username} access`] = issued.access_token
      }
      web = await TestAuthServer.open(store, { settings: { onLoopback: false } })
      web.time.now = local.time.now
    })

    it('accepts no sample account, and no account that the sample administrator added (ENDS-2, ADMIN-23)', async () => {
      for (const username of SAMPLES) assert.equal(await statusOf(local, username), 302, username)
      for (const username of SAMPLES) assert.equal(await statusOf(web, username), 401, username)
      const marked = store.db.selectFrom('clinician').select('username').where('for_loopback', '=', true)
      const names = (await marked.execute()).map(({ username }) => username)
      assert.deepEqual(names.toSorted(), [...SAMPLES, 'bob'].toSorted())
      assert.equal(await statusOf(web, 'ada', 'correct horse'), 302)
    })

    it('knows no client that registered itself, or that the lab or the sample administrator added (ENDS-2)', async () => {
      assert.equal((await requestBackendToken(web)).json().error, 'invalid_client')
      for (const id of Object.values(apps)) {
        assert.equal(await isKnown(local, id), true, id)
        assert.equal(await isKnown(web, id), false, id)
      }
      assert.equal(await isKnown(web, 'app'), true)
    })

    it('ends all logins, grants and tokens of loopback, also of other accounts and apps (ENDS-2)', async () => {
      for (const username of ['clinician', 'ada'])
        assert.equal((await web.refresh(tokens[username] ?? '', APP)).json().error, 'invalid_grant', username)
      const { revoked } = (await web.openBrowser().get('/oauth2/revocations')).json()
      for (const name of ['clinician access', 'ada access', 'backend']) {
        const [issuedFor = ''] = String(decodeClaims(tokens[name]).jti).split('.')
        assert.ok(revoked.includes(computeRevocationKey(issuedFor)), name)
      }
    })

    it('names what has ended, and how to keep it (ENDS-2)', async () => {
      assert.equal(await describeMadeForLoopback(store, { onLoopback: true }), undefined)
      const line = (await describeMadeForLoopback(store, { onLoopback: false })) ?? ''
      assert.match(line, /^Created on loopback[^\n]*: accounts admin, alba, bob, clinician, mira; apps /)
      assert.match(line, /clinician set-password; to keep an app, run client approve\.$/)
    })

    it('accepts an account with a new password, and an app that was approved, by an administrator of its own (ENDS-2)', async () => {
      await setPassword(asCommand(web), { username: 'mira' }, { password: 'a new password' })
      assert.equal(await statusOf(web, 'mira', 'a new password'), 302)
      await approveClient(asCommand(web), 'developed')
      assert.equal(await isKnown(web, 'developed'), true)
    })
  })
})
