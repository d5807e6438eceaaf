import assert from 'node:assert/strict'
import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, beforeEach, describe, it } from 'node:test'
import { eachDatabaseIfThorough } from '../../../../test/support/databases.ts'
import { change, HOSPITAL_CLIENT, Hospital, KEY_CLIENT_ID } from '../../../../test/support/hospital.ts'
import { rsaPair } from '../../../../test/support/rsa-pair.ts'
import { createAuditor, findRecords } from '../../../audit/index.ts'
import type { OidcProvider } from '../../../config/index.ts'
import { computeThumbprint } from '../../../jwt/index.ts'
import { changeUser } from '../../admin/accounts/change-user.ts'
import { linkUser, unlinkUser } from '../../admin/accounts/link-user.ts'
import { listUsers } from '../../admin/accounts/users.ts'
import { makeCommandLine } from '../../admin/base/action.ts'
import { decodeClaims, type TestAuthServer } from '../../testing/test-auth-server.ts'
import {
  describeSignIn,
  makeProvider,
  openSignInServer,
  signIn,
  startSignIn,
} from '../../testing/test-sign-in.ts'
import { openTestStore } from '../../testing/test-store.ts'
import { storeAccount } from '../../users/sign-in/account.ts'

const ADA = {
  preferred_username: 'ada',
  name: 'Dr. Ada Byron',
  fhirUser: 'Practitioner/byron',
  employee_number: 'e-byron',
  groups: ['clinicians'],
}
const GRACE = { ...ADA, preferred_username: 'grace', name: 'Dr. Grace', groups: ['visitors', 'admins'] }
const users = { 'user-1': ADA, 'user-2': GRACE }
const allow = { claim: 'groups', values: ['clinicians'] }

const rsaKey = rsaPair(2)
const ecKey = generateKeyPairSync('ec', { namedCurve: 'P-256' })
function makeClientKey({ publicKey }: { readonly publicKey: KeyObject }, kid?: string): object {
  const jwk = publicKey.export({ format: 'jwk' })
  const { kty = '', n = '', e = '' } = jwk
  return { ...jwk, kid: kid ?? computeThumbprint({ kty, n, e }), use: 'sig' }
}

let hospital: Hospital
before(async () => {
  hospital = await Hospital.start({
    users,
    clientKeys: [makeClientKey(rsaKey), makeClientKey(ecKey, 'my-key')],
  })
})
after(() => hospital.close())
beforeEach(() => {
  hospital.users = users
  hospital.tamper = undefined
})

eachDatabaseIfThorough((_name, open) => {
  describe('sign-in with an identity provider', () => {
    it('provisions an account at the first sign-in, on whichever instance the callback arrives (SIGNIN-3)', async () => {
      const store = await open()
      const [one, two] = [
        await openSignInServer(store, [makeProvider(hospital)]),
        await openSignInServer(store, [makeProvider(hospital)]),
      ]
      const browser = one.openBrowser()
      const callback = await hospital.authorize(await startSignIn(browser), 'user-1')
      const other = two.openBrowser()
      for (const [name, value] of browser.cookies) other.cookies.set(name, value)
      assert.equal((await other.get(callback)).headers.location, '/portal')
      assert.match((await other.get('/portal')).body, /Dr\. Ada Byron/)
      const rows = await store.db.selectFrom('clinician').selectAll().where('username', '=', 'ada').execute()
      assert.deepEqual(
        rows.map(row => [row.fhir_user_id, row.password_hash]),
        [['byron', '']],
      )
      assert.equal((await one.openBrowser().login('ada', '')).statusCode, 401)
    })

    it('applies the mapping to a provisioned account again at each sign-in (SIGNIN-6)', async () => {
      const store = await open()
      const auth = await openSignInServer(store, [makeProvider(hospital)])
      await signIn(auth.openBrowser(), hospital, 'user-1')
      hospital.users = { 'user-1': { ...ADA, name: 'Dr. Ada Lovelace', fhirUser: 'Practitioner/lovelace' } }
      await signIn(auth.openBrowser(), hospital, 'user-1')
      const rows = await store.db.selectFrom('clinician').selectAll().where('username', '=', 'ada').execute()
      assert.deepEqual(
        rows.map(row => [row.display_name, row.fhir_user_id]),
        [['Dr. Ada Lovelace', 'lovelace']],
      )
    })

    it('does not give an account records again that opens none (LOGIN-19)', async () => {
      const store = await open()
      const auth = await openSignInServer(store, [makeProvider(hospital)])
      await signIn(auth.openBrowser(), hospital, 'user-1')
      const keep = (fhir_user_id: string) =>
        store.db.updateTable('clinician').set({ fhir_user_id }).where('username', '=', 'ada').execute()
      await keep('')
      const browser = auth.openBrowser()
      await signIn(browser, hospital, 'user-1')
      assert.equal((await browser.get('/portal')).headers.location, '/account')
      const find = () =>
        store.db.selectFrom('clinician').select('fhir_user_id').where('username', '=', 'ada').execute()
      assert.deepEqual(await find(), [{ fhir_user_id: '' }])
      await keep('byron')
      const account = {
        kind: 'provisioned',
        issuer: hospital.issuer,
        subject: 'user-1',
        username: 'ada',
      } as const
      const { id } = await store.db
        .selectFrom('clinician')
        .select('id')
        .where('username', '=', 'ada')
        .executeTakeFirstOrThrow()
      const found = { ...account, displayName: 'Ada', fhirUserId: 'byron', userId: id, admin: false }
      await keep('')
      assert.equal(await storeAccount(store.db, found, 1), undefined)
      assert.deepEqual(await find(), [{ fhir_user_id: '' }])
    })

    it('creates one account for simultaneous first sign-ins (SIGNIN-6)', async () => {
      const store = await open()
      const auth = await openSignInServer(store, [makeProvider(hospital)])
      const browsers = [auth.openBrowser(), auth.openBrowser(), auth.openBrowser()]
      const callbacks: string[] = []
      for (const browser of browsers)
        callbacks.push(await hospital.authorize(await startSignIn(browser), 'user-1'))
      const responses = await Promise.all(browsers.map((browser, at) => browser.get(callbacks[at] ?? '')))
      assert.deepEqual(
        responses.map(response => response.headers.location),
        ['/portal', '/portal', '/portal'],
      )
      const links = await store.db.selectFrom('clinician_link').selectAll().execute()
      assert.deepEqual(
        links.map(link => [link.issuer, link.subject, Boolean(link.provisioned)]),
        [[hospital.issuer, 'user-1', true]],
      )
    })
  })
})

describe('the account of a provider’s user', () => {
  const open = openTestStore()

  const openServer = async (changes: Partial<OidcProvider> = {}) =>
    openSignInServer(await open(), [makeProvider(hospital, changes)])
  const attempt = async (auth: TestAuthServer, user = 'user-1') =>
    describeSignIn(await signIn(auth.openBrowser(), hospital, user))

  it('is the linked clinician, with the clinician’s own Practitioner, and never one of the same name (SIGNIN-6)', async () => {
    const auth = await openServer({ provision: false })
    await auth.addUser('ada')
    await auth.store.db
      .updateTable('clinician')
      .set({ fhir_user_id: 'lovelace' })
      .where('username', '=', 'ada')
      .execute()
    assert.equal(await attempt(auth), '403 unknown-subject')
    const { db } = auth.store
    const { id } = await db
      .selectFrom('clinician')
      .select('id')
      .where('username', '=', 'ada')
      .executeTakeFirstOrThrow()
    const link = { issuer: hospital.issuer, clinician_id: id, provisioned: false, created_at: 0 }
    await db
      .insertInto('clinician_link')
      .values([
        { ...link, subject: 'user-2', issuer: 'https://other.example' },
        { ...link, subject: 'user-1' },
      ])
      .execute()
    assert.equal(await attempt(auth, 'user-2'), '403 unknown-subject')
    assert.equal(await attempt(auth), '302 /portal')
    const { fhir_user_id } = await db
      .selectFrom('clinician')
      .select('fhir_user_id')
      .where('id', '=', id)
      .executeTakeFirstOrThrow()
    assert.equal(fhir_user_id, 'lovelace')
    await db.updateTable('clinician').set({ disabled: true }).where('id', '=', id).execute()
    assert.equal(await attempt(auth), '403 disabled')
  })

  it('is refused if another clinician has the username (SIGNIN-6)', async () => {
    const auth = await openServer()
    await auth.addUser('ada')
    assert.equal(await attempt(auth), '403 username-taken')
  })

  it('needs a group of the settings (SIGNIN-8)', async () => {
    const auth = await openServer({ allow })
    assert.equal(await attempt(auth), '302 /portal')
    assert.equal(await attempt(auth, 'user-2'), '403 not-allowed')
  })

  it('reads groups that are not in the token from the user info, and otherwise says so (SIGNIN-8)', async () => {
    const auth = await openServer({ allow })
    hospital.tamper = change({ groups: undefined, _claim_names: { groups: 'src1' } })
    assert.equal(await attempt(auth), '302 /portal')
    hospital.users = { 'user-1': { ...ADA, groups: undefined } }
    assert.equal(await attempt(auth), '403 too-many-groups')
  })

  it('is an administrator while the provider says so (SIGNIN-8)', async () => {
    const auth = await openServer({ admin: { claim: 'groups', values: ['admins'] } })
    const isAdmin = async (user: string) => {
      await auth.store.db.deleteFrom('login').execute()
      await attempt(auth, user)
      const { admin } = await auth.store.db.selectFrom('login').select('admin').executeTakeFirstOrThrow()
      return Boolean(admin)
    }
    assert.deepEqual([await isAdmin('user-1'), await isAdmin('user-2')], [false, true])
    const { store, time, rules } = auth
    const list = async () =>
      (await listUsers({ store, rules, clock: () => time.now }, { admin: true, limit: 9 })).items.map(
        ({ username, admin, adminProviders }) => [username, admin, adminProviders],
      )
    assert.deepEqual(await list(), [['grace', false, ['hospital']]])
    hospital.users = { 'user-2': { ...GRACE, groups: [] } }
    assert.equal(await isAdmin('user-2'), false)
    assert.deepEqual(await list(), [])
  })

  it('signs an administrator in again at the provider, which must return auth_time (ADMIN-22)', async () => {
    const auth = await openServer({ admin: { claim: 'groups', values: ['admins'] } })
    const browser = auth.openBrowser()
    assert.equal((await signIn(browser, hospital, 'user-2')).headers.location, '/portal')
    const again = (await browser.get('/admin/sign-in')).headers.location
    assert.equal(again, '/login/providers/hospital?prompt=login')
    const request = new URL(await startSignIn(browser, again)).searchParams
    assert.deepEqual([request.get('prompt'), request.get('max_age')], ['login', '300'])
    const repeat = async () => describeSignIn(await signIn(browser, hospital, 'user-2', again))
    assert.equal(await repeat(), '302 /admin/signed-in')
    for (const authTime of [undefined, Math.floor(Date.now() / 1000) - 100]) {
      hospital.tamper = change({ auth_time: authTime })
      assert.equal(await repeat(), '403 weak-authentication')
    }
  })

  it('has signed in recently only if the provider returns auth_time (ADMIN-22)', async () => {
    const auth = await openServer({ admin: { claim: 'groups', values: ['admins'] } })
    const browser = auth.openBrowser()
    const open = async () => (await browser.get('/admin/keys/rotate')).headers.location
    hospital.tamper = change({ auth_time: undefined })
    assert.equal(describeSignIn(await signIn(browser, hospital, 'user-2')), '302 /portal')
    assert.equal(await open(), '/login/providers/hospital?prompt=login')
    hospital.tamper = undefined
    await signIn(browser, hospital, 'user-2')
    assert.equal(await open(), undefined)
  })

  it('stops being an administrator when another one removes the role (ADMIN-2)', async () => {
    const auth = await openServer()
    const browser = auth.openBrowser()
    const { store, time } = auth
    await signIn(browser, hospital, 'user-1')
    await store.db.updateTable('clinician').set({ admin: true }).execute()
    await signIn(browser, hospital, 'user-1')
    assert.equal((await browser.get('/admin')).statusCode, 200)
    const admin = { store, audit: createAuditor({ store }), clock: () => time.now, rules: auth.rules }
    const [row] = await store.db.selectFrom('clinician_link').select('clinician_id').execute()
    await changeUser(
      { ...admin, ...makeCommandLine('tester@test') },
      { id: row?.clinician_id ?? '' },
      { admin: false },
    )
    assert.equal((await browser.get('/admin')).statusCode, 403)
  })

  it('ends when an administrator removes the link', async () => {
    const auth = await openServer()
    const browser = auth.openBrowser()
    const { store, time } = auth
    await signIn(browser, hospital, 'user-1')
    assert.equal((await browser.get('/portal')).statusCode, 200)
    const admin = { store, audit: createAuditor({ store }), clock: () => time.now, rules: auth.rules }
    const { clinician_id: id, ...link } = await store.db
      .selectFrom('clinician_link')
      .select(['clinician_id', 'issuer', 'subject'])
      .executeTakeFirstOrThrow()
    await unlinkUser({ ...admin, ...makeCommandLine('tester@test') }, { id }, link)
    assert.equal((await browser.get('/portal')).statusCode, 302)
  })

  it('ends when the link moves to another clinician (ENDS-1)', async () => {
    const auth = await openServer()
    const browser = auth.openBrowser()
    await signIn(browser, hospital, 'user-1')
    await auth.addUser('other')
    const { store, time, rules } = auth
    const admin = {
      store,
      audit: createAuditor({ store }),
      clock: () => time.now,
      rules,
      ...makeCommandLine('tester@test'),
    }
    const { issuer, subject } = await store.db
      .selectFrom('clinician_link')
      .select(['issuer', 'subject'])
      .executeTakeFirstOrThrow()
    await linkUser(admin, { username: 'other' }, { issuer, subject })
    assert.equal((await browser.get('/portal')).statusCode, 302)
  })

  const staff = { claim: 'groups', values: ['admins', 'visitors'] }
  const list = (changes: Partial<OidcProvider> | undefined) =>
    changes ? [makeProvider(hospital, { allow: staff, admin: staff, ...changes })] : []
  for (const [how, changes, outcome] of [
    ['is removed', undefined, 'ended'],
    ['allows other groups', { allow }, 'ended'],
    ['allows groups by another claim', { allow: { ...staff, claim: 'roles' } }, 'ended'],
    ['allows fewer groups, but this one', { allow: { ...staff, values: ['admins'] } }, 'administrator'],
    ['requires an acr', { acrValues: ['urn:mfa'] }, 'ended'],
    ['requires a recent authentication, as this one', { maxAge: 60 }, 'administrator'],
    ['maps users by another claim', { fhirUser: { kind: 'claim', claim: 'other' } }, 'ended'],
    ['calls other users administrators', { admin: allow }, 'user'],
    ['calls no user an administrator', { admin: undefined }, 'user'],
    ['has another name', { name: 'Clinic' }, 'administrator'],
  ] as const)
    it(`leaves the session as the provider would accept it when it ${how} (ENDS-1)`, async () => {
      const auth = await openSignInServer(await open(), list({}))
      const browser = auth.openBrowser()
      await signIn(browser, hospital, 'user-2')
      const find = async () => {
        const { statusCode } = await browser.get('/admin')
        return new Map([
          [200, 'administrator'],
          [403, 'user'],
          [302, 'ended'],
        ]).get(statusCode)
      }
      assert.equal(await find(), 'administrator')
      auth.changeLogin({ order: [], passwords: true, secondFactor: 'none', providers: list(changes) })
      assert.equal(await find(), outcome)
    })

  it('is tested by an administrator, with its metadata, keys and clock (ADMIN-24)', async () => {
    const gone = makeProvider({ issuer: 'http://127.0.0.1:1' }, { id: 'gone' })
    const admin = { claim: 'groups', values: ['admins'] }
    const auth = await openSignInServer(await open(), [makeProvider(hospital, { admin }), gone])
    const browser = auth.openBrowser()
    await signIn(browser, hospital, 'user-2')
    const test = async (id: string) => (await browser.post(`/admin/providers/${id}/test`, {})).body
    assert.match(await test('hospital'), /hospital can be used[\s\S]*Key set[\s\S]*The same as here/)
    assert.match(await test('gone'), /gone cannot be used/)
  })

  it('is never found by a search that the id of a Practitioner makes (SIGNIN-7)', async () => {
    const auth = await openServer({ provision: false })
    await auth.addUser('ada', { id: 'ada' })
    const link = { issuer: hospital.issuer, subject: 'user-1', clinician_id: 'ada', created_at: 0 }
    await auth.store.db
      .insertInto('clinician_link')
      .values({ ...link, provisioned: false })
      .execute()
    auth.fhir.requests.length = 0
    for (const fhir_user_id of ['..', '.', 'x/..', '?identifier=urn:x|e-byron', 'Practitioner/..']) {
      await auth.store.db.updateTable('clinician').set({ fhir_user_id }).where('id', '=', 'ada').execute()
      assert.equal(await attempt(auth), '403 no-practitioner', fhir_user_id)
    }
    assert.equal(auth.fhir.requests.length, 0)
    hospital.users = { 'user-1': { ...ADA, fhirUser: 'Practitioner/..' } }
    assert.equal(await attempt(await openServer()), '403 bad-claims')
    hospital.users = { 'user-1': ADA }
  })

  it('needs exactly one Practitioner on the FHIR server (SIGNIN-7)', async () => {
    const search = (text: string) => ({ fhirUser: { kind: 'search', search: text } }) as const
    const byNumber = await openServer(search('Practitioner?identifier=urn:x|{employee_number}'))
    assert.equal(await attempt(byNumber), '302 /portal')
    hospital.users = { 'user-1': { ...ADA, employee_number: 'e-nobody' } }
    assert.equal(await attempt(byNumber), '403 no-practitioner')
    assert.equal(
      await attempt(await openServer(search('Practitioner?x={employee_number}'))),
      '403 several-practitioners',
    )
    hospital.users = { 'user-1': { ...ADA, fhirUser: 'Practitioner/nobody' } }
    const auth = await openServer()
    assert.equal(await attempt(auth), '403 no-practitioner')
    auth.fhir.fail('no-response')
    assert.equal(await attempt(auth), '503 fhir-unavailable')
  })
})

eachDatabaseIfThorough((_name, open) => {
  describe('a provider for patients', () => {
    const HIGH = 'urn:high'
    const ALBA = { preferred_username: 'alba', name: 'Alba Juniper', employee_number: 'n-1' }
    const search = { kind: 'search', search: 'Patient?identifier=urn:y|{employee_number}' } as const
    const provider = () => makeProvider(hospital, { users: 'patients', acrValues: [HIGH], fhirUser: search })
    const person = (id: string, value: string) => ({
      resourceType: 'Patient' as const,
      id,
      identifier: [{ system: 'urn:y', value }],
    })
    const openServer = async (
      resources = [person('juniper', 'n-1'), person('a', 'n-2'), person('b', 'n-2')],
    ) => {
      const store = await open()
      const audit = createAuditor({ store, failure: 'refuse' })
      return openSignInServer(store, [provider()], { resources, audit })
    }

    it('signs patients in to their own record, with a sufficient acr (SIGNIN-15)', async () => {
      hospital.users = { 'user-1': ALBA }
      const auth = await openServer()
      const browser = auth.openBrowser()
      assert.equal(describeSignIn(await signIn(browser, hospital, 'user-1')), '302 /portal')
      assert.notEqual((await browser.get('/portal')).statusCode, 200, 'the portal is not for patients')
      const account = await auth.store.db
        .selectFrom('clinician')
        .selectAll()
        .where('username', '=', 'alba')
        .executeTakeFirst()
      assert.deepEqual([account?.fhir_user_id, Boolean(account?.admin)], ['Patient/juniper', false])
      assert.equal(describeSignIn(await signIn(browser, hospital, 'user-1')), '302 /portal', 'again')
    })

    it('refuses an insufficient acr with a page and an audit record (SIGNIN-15)', async () => {
      hospital.users = { 'user-1': ALBA }
      const auth = await openServer()
      for (const acr of ['urn:low', undefined]) {
        hospital.tamper = change({ acr })
        const refused = await signIn(auth.openBrowser(), hospital, 'user-1')
        assert.equal(describeSignIn(refused), '403 weak-authentication')
        assert.match(refused.body, /A stronger way of signing in is required/)
        const [record] = await findRecords(auth.store, { events: [{ kind: 'login' }], limit: 1 })
        assert.match(record?.reason ?? '', /acr of the id_token is not one of acr-values/)
      }
    })

    it('refuses patients who are not in the record, or there twice, and clinicians (SIGNIN-15)', async () => {
      const auth = await openServer()
      for (const [claims, kind] of [
        [{ ...ALBA, employee_number: 'n-9' }, 'no-patient'],
        [{ ...ALBA, employee_number: 'n-2' }, 'several-patients'],
      ] as const) {
        hospital.users = { 'user-1': claims }
        assert.equal(describeSignIn(await signIn(auth.openBrowser(), hospital, 'user-1')), `403 ${kind}`)
      }
      const link = { issuer: hospital.issuer, subject: 'user-1' }
      const clock = () => auth.time.now
      const admin = { ...auth, audit: createAuditor({ store: auth.store }), clock, ...makeCommandLine('t@t') }
      await linkUser({ ...admin, rules: auth.rules }, { username: 'clinician' }, link)
      hospital.users = { 'user-1': ALBA }
      assert.equal(describeSignIn(await signIn(auth.openBrowser(), hospital, 'user-1')), '403 other-users')
    })
  })
})

describe('an authorization request through an identity provider', () => {
  const open = openTestStore()
  let auth: TestAuthServer
  before(async () => {
    auth = await openSignInServer(await open(), [makeProvider(hospital)])
    await auth.addClient({ client_id: 'app', scope: 'openid fhirUser' })
  })

  const authorize = (
    browser: ReturnType<TestAuthServer['openBrowser']>,
    more: Record<string, string> = {},
  ) => {
    auth.time.now = Date.now()
    return auth.authorize(browser, {
      client_id: 'app',
      redirect_uri: 'https://app.example/callback',
      scope: 'openid fhirUser',
      ...more,
    })
  }

  it('continues after the sign-in, and its id_token has acr, amr and auth_time of the provider (SIGNIN-9)', async () => {
    const start = Math.floor(Date.now() / 1000)
    const browser = auth.openBrowser()
    const { location = '' } = (await authorize(browser, { acr_values: 'urn:mfa urn:pwd' })).headers
    const page = (await browser.get(location)).body
    const [, path = ''] = /href="(\/login\/providers\/hospital[^"]*)"/.exec(page) ?? []
    const resumed = await signIn(browser, hospital, 'user-1', path)
    const done = await browser.get(resumed.headers.location ?? '')
    const code = new URL(done.headers.location ?? '').searchParams.get('code') ?? ''
    const tokens = (
      await auth.exchange(code, { client_id: 'app', redirect_uri: 'https://app.example/callback' })
    ).json()
    const { acr, amr, auth_time: authTime, fhirUser } = decodeClaims(tokens.id_token)
    assert.deepEqual(
      [acr, amr, fhirUser],
      ['urn:mfa', ['pwd'], 'http://localhost:8080/fhir/Practitioner/byron'],
    )
    assert(Number(authTime) >= start && Number(authTime) <= start + 10)
  })

  it('passes prompt=login, max_age, acr_values and login_hint on (SIGNIN-9)', async () => {
    const browser = auth.openBrowser()
    const wishes = { prompt: 'login', max_age: '60', acr_values: 'urn:mfa', login_hint: 'ada' }
    const { location = '' } = (await authorize(browser, wishes)).headers
    const interaction = new URL(location, 'http://x').searchParams.get('interaction')
    const url = new URL(await startSignIn(browser, `/login/providers/hospital?interaction=${interaction}`))
    for (const [name, value] of Object.entries(wishes)) assert.equal(url.searchParams.get(name), value)
    assert.equal(url.searchParams.get('code_challenge_method'), 'S256')
    assert.equal(url.searchParams.get('redirect_uri'), 'http://localhost:9000/login/callback')
  })

  it('asks for a stronger sign-in once (SIGNIN-9)', async () => {
    const browser = auth.openBrowser()
    await signIn(browser, hospital, 'user-1')
    auth.time.now = Date.now() + 1000
    const stronger = await auth.authorize(browser, {
      client_id: 'app',
      redirect_uri: 'https://app.example/callback',
      scope: 'openid',
      acr_values: 'urn:smartcard',
    })
    assert.match(stronger.headers.location ?? '', /^\/login/)
    const interaction = new URL(stronger.headers.location ?? '', 'http://x').searchParams.get('interaction')
    const path = `/login/providers/hospital?interaction=${interaction}`
    hospital.tamper = change({ acr: 'urn:pwd' })
    const resumed = await signIn(browser, hospital, 'user-1', path)
    const done = await browser.get(resumed.headers.location ?? '')
    assert.match(done.headers.location ?? '', /^https:\/\/app\.example\/callback\?code=/)
  })

  it('refuses an authentication that is older or weaker than required (SIGNIN-9)', async () => {
    const strict = await openSignInServer(await open(), [
      makeProvider(hospital, { acrValues: ['urn:mfa'], maxAge: 3600 }),
    ])
    const attempt = async (claims: Record<string, unknown>) => {
      hospital.tamper = change(claims)
      return describeSignIn(await signIn(strict.openBrowser(), hospital, 'user-1'))
    }
    const now = Math.floor(Date.now() / 1000)
    assert.equal(await attempt({}), '302 /portal')
    assert.equal(await attempt({ acr: 'urn:pwd' }), '403 weak-authentication')
    assert.equal(await attempt({ auth_time: now - 3700 }), '403 weak-authentication')
    assert.equal(await attempt({ auth_time: now - 3630 }), '302 /portal')
    assert.equal(await attempt({ auth_time: undefined }), '403 weak-authentication')
  })
})

describe('a sign-in that fails', () => {
  const open = openTestStore()

  it('leaves an audit record, shows a page in plain words, and the password form still works (SIGNIN-10)', async () => {
    const store = await open()
    const audit = createAuditor({ store, failure: 'refuse' })
    const auth = await openSignInServer(store, [makeProvider(hospital, { allow })], { audit })
    const browser = auth.openBrowser()
    const refused = await signIn(browser, hospital, 'user-2')
    assert.match(refused.body, /Your account may not use Sallyport/)
    assert.match(refused.body, /href="\/login"/)
    assert.doesNotMatch(refused.body, /visitors/)
    const denied = await signIn(browser, hospital, '')
    assert.match(denied.body, /You were not signed in/)
    await audit.flush()
    const records = await (await store.trail.read())
      .selectFrom('audit_event')
      .select(['kind', 'allowed', 'status', 'subject', 'reason'])
      .orderBy('id')
      .execute()
    assert.deepEqual(
      records.map(({ allowed, ...record }) => ({ ...record, allowed: Boolean(allowed) })),
      [
        {
          kind: 'login',
          allowed: false,
          status: 403,
          subject: 'user-2',
          reason:
            'hospital: Your account may not use Sallyport: The claim groups has none of the allowed values',
        },
        {
          kind: 'login',
          allowed: false,
          status: 403,
          subject: null,
          reason: 'hospital: You were not signed in: The provider answered access_denied',
        },
      ],
    )
    assert.doesNotMatch(denied.body, /\/activity/)
    assert.equal((await browser.login()).headers.location, '/portal')
    const again = await signIn(browser, hospital, 'user-2')
    assert.match(again.body, /href="\/activity\?reference=/)
  })

  it('names an unreachable provider, and neither the start nor another provider waits for it (SIGNIN-10)', async () => {
    const silent = makeProvider({ issuer: 'http://127.0.0.1:1' }, { id: 'silent', name: 'Other account' })
    const auth = await openSignInServer(await open(), [silent, makeProvider(hospital)])
    const down = await auth.openBrowser().get('/login/providers/silent')
    assert.deepEqual([down.statusCode, describeSignIn(down)], [503, '503 unreachable'])
    assert.equal(describeSignIn(await signIn(auth.openBrowser(), hospital, 'user-1')), '302 /portal')
    assert.equal((await auth.openBrowser().get('/login/providers/nobody')).statusCode, 404)
  })

  it('says that the provider is unavailable during an outage, and works after it (SIGNIN-10)', async () => {
    const auth = await openSignInServer(await open(), [makeProvider(hospital)])
    const browser = auth.openBrowser()
    const callback = await hospital.authorize(await startSignIn(browser), 'user-1')
    hospital.outage = true
    assert.equal(describeSignIn(await browser.get(callback)), '503 unreachable')
    auth.time.now += 10_000
    const start = await browser.get('/login/providers/hospital')
    assert.equal(describeSignIn(start), '503 unreachable', 'the browser is not redirected to a dead server')
    hospital.outage = false
    auth.time.now += 5_000
    assert.equal(describeSignIn(await signIn(browser, hospital, 'user-1')), '302 /portal')
  })

  it('shows the ways to sign in in the order of the settings', async () => {
    const providers = [makeProvider(hospital), makeProvider(hospital, { id: 'other', name: 'Other account' })]
    const list = async (order: readonly string[]) => {
      const settings = { login: { order, passwords: true, secondFactor: 'none' as const, providers } }
      const server = await openSignInServer(await open(), providers, { settings })
      const { body } = await server.openBrowser().get('/login')
      assert.equal(body.match(/class="btn btn--wide"/g)?.length, 1, 'one main button')
      return body.match(/Other account|Hospital account|name="password"/g)
    }
    assert.deepEqual(await list([]), ['name="password"', 'Hospital account', 'Other account'])
    assert.deepEqual(await list(['other', 'password']), [
      'Other account',
      'name="password"',
      'Hospital account',
    ])
    assert.deepEqual(await list(['other']), ['Other account', 'name="password"', 'Hospital account'])
  })

  it('offers no password form if passwords are switched off (SIGNIN-2)', async () => {
    const providers = [makeProvider(hospital)]
    const auth = await openSignInServer(await open(), providers, {
      settings: { login: { order: [], passwords: false, secondFactor: 'none', providers } },
    })
    const { body } = await auth.openBrowser().get('/login')
    assert.doesNotMatch(body, /name="password"/)
    assert.match(body, /href="\/login\/providers\/hospital">Sign in with Hospital account</)
    const posted = await auth.openBrowser().login()
    assert.deepEqual([posted.statusCode, posted.cookies], [403, []])
  })
})

describe('the credentials of a provider in files', () => {
  const open = openTestStore()
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-provider-'))
  after(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'credentials')
  const signInWith = async (changes: Partial<OidcProvider>) => {
    const auth = await openSignInServer(await open(), [
      makeProvider(hospital, { clientSecret: undefined, ...changes }),
    ])
    return describeSignIn(await signIn(auth.openBrowser(), hospital, 'user-1'))
  }

  it('are a client secret', async () => {
    writeFileSync(file, 'wrong\n')
    assert.equal(await signInWith({ clientSecretFile: file }), '502 bad-response')
    writeFileSync(file, `${HOSPITAL_CLIENT.secret}\n`)
    assert.equal(await signInWith({ clientSecretFile: file }), '302 /portal')
  })

  it('are a private key, as PEM or as a JWK with its kid', async () => {
    const byKey = { clientId: KEY_CLIENT_ID, clientKeyFile: file }
    writeFileSync(file, rsaKey.privateKey.export({ format: 'pem', type: 'pkcs8' }))
    assert.equal(await signInWith(byKey), '302 /portal')
    writeFileSync(file, JSON.stringify({ ...ecKey.privateKey.export({ format: 'jwk' }), kid: 'my-key' }))
    assert.equal(await signInWith(byKey), '302 /portal')
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    writeFileSync(file, JSON.stringify({ ...privateKey.export({ format: 'jwk' }), kid: 'my-key' }))
    assert.equal(await signInWith(byKey), '502 bad-response')
  })

  it('stop the sign-in if the file is missing or has another kind of key', async () => {
    const { privateKey } = generateKeyPairSync('ed25519')
    writeFileSync(file, privateKey.export({ format: 'pem', type: 'pkcs8' }))
    for (const clientKeyFile of [file, join(folder, 'none')]) {
      const auth = await openSignInServer(await open(), [makeProvider(hospital, { clientKeyFile })])
      const response = await auth.openBrowser().get('/login/providers/hospital')
      assert.equal(describeSignIn(response), '503 unreachable')
    }
  })
})
