import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { createAuditor, findRecords } from '../../../audit/index.ts'
import { addPhone, readCodes } from '../../testing/second-factor.ts'
import { TestAuthServer } from '../../testing/test-auth-server.ts'
import { openTestStore } from '../../testing/test-store.ts'

describe('/account/factors', () => {
  const open = openTestStore()
  let auth: TestAuthServer
  before(async () => {
    const store = await open()
    auth = await TestAuthServer.open(store, { audit: createAuditor({ store, failure: 'refuse' }) })
  })
  const findIds = async () =>
    (await auth.store.db.selectFrom('factor').select('id').orderBy('created_at').execute()).map(
      ({ id }) => id,
    )

  it('lists, renames and removes second factors, and ends the other sign-ins (ACCOUNT-4)', async () => {
    const browser = await auth.logIn()
    assert.match((await browser.get('/account/factors')).body, /Two-step sign-in is off\./)
    assert.match((await browser.get('/account/factors/add')).body, /such as Google Authenticator/)
    const { codes, page } = await addPhone(auth, browser)
    assert.equal(codes.length, 10)
    assert.match(page, /Authenticator app added\.[\s\S]*Two-step sign-in is on\.[\s\S]*no digits 0 and 1/)
    assert.match((await browser.get('/account/factors')).body, /Two-step sign-in is on\./)
    const others = await browser.post('/account/factors/recovery-codes', {})
    assert.doesNotMatch(others.body, /Two-step sign-in is on/)
    auth.time.now += 1000
    assert.deepEqual((await addPhone(auth, browser)).codes, [], 'the codes of the first one stay')
    const added = (await browser.get('/account/factors?added=totp')).body
    assert.match(
      added,
      /role="status">[\s\S]*Authenticator app added\.<\/b> Two-step sign-in is on\. When you sign in, enter/,
    )
    assert.doesNotMatch((await browser.get('/account/factors?added=passkey')).body, / added\./)
    const [first = '', second = ''] = await findIds()
    await browser.post('/account/factors', { factor: first, name: ' My ‮phone ' })
    const { body } = await browser.get('/account/factors')
    assert.match(body, /value="My phone"/)
    await auth.addUser('other')
    const other = await auth.logIn('other')
    await other.post('/account/factors', { factor: first, name: 'stolen' })
    assert.equal((await other.post('/account/factors/remove', { factor: first })).statusCode, 409)
    assert.deepEqual(await findIds(), [first, second])
    const elsewhere = await auth.openBrowser()
    await elsewhere.login()
    await elsewhere.post('/login/second-factor', { code: readCodes(others)[0] ?? '' })
    assert.equal((await elsewhere.get('/portal')).statusCode, 200)
    assert.match((await browser.get(`/account/factors/remove?factor=${first}`)).body, /My phone/)
    assert.equal((await browser.post('/account/factors/remove', { factor: first })).statusCode, 303)
    assert.deepEqual(await findIds(), [second])
    assert.equal((await elsewhere.get('/portal')).headers.location, '/login')
    assert.equal((await browser.get('/portal')).statusCode, 200)
    await browser.post('/account/factors/remove', { factor: second })
    assert.deepEqual(await auth.store.db.selectFrom('recovery_code').selectAll().execute(), [])
    const records = await findRecords(auth.store, { events: [{ kind: 'admin' }], limit: 9 })
    assert.deepEqual(
      records.map(({ reason }) => reason),
      [
        'Authenticator app removed',
        'Authenticator app removed',
        'Second factor renamed',
        'Authenticator app added',
        'Recovery codes replaced',
        'Authenticator app added',
      ],
    )
  })

  it('ends the other sign-ins when one is added, and keeps this one and apps that work without the user (ACCOUNT-4)', async () => {
    await auth.addUser('adder')
    await auth.addClient({ client_id: 'lasting', scope: 'launch offline_access patient/*.rs' })
    const app = { client_id: 'lasting', redirect_uri: 'https://lasting.example/callback' }
    const [browser, elsewhere] = [await auth.logIn('adder'), await auth.logIn('adder')]
    const scope = 'launch offline_access patient/*.rs'
    const kept = (await auth.exchange(await auth.getCode(elsewhere, { ...app, scope }), app)).json()
    const lost = (await auth.exchange(await auth.getCode(elsewhere))).json()
    assert.match((await browser.get('/account/factors/add')).body, /you are signed out in all other browsers/)
    await addPhone(auth, browser)
    assert.equal((await browser.get('/portal')).statusCode, 200)
    assert.equal((await elsewhere.get('/portal')).headers.location, '/login')
    assert.equal((await auth.refresh(kept.refresh_token, app)).statusCode, 200)
    assert.equal((await auth.refresh(lost.refresh_token)).json().error, 'invalid_grant')
  })

  it('needs a recent sign-in for every change, and returns to the page (ACCOUNT-4)', async () => {
    const browser = await auth.logIn()
    auth.time.now += 300_000
    const asked = await browser.get('/account/factors/add')
    assert.equal(asked.headers.location, '/login?prompt=login')
    for (const path of ['add', 'remove', 'recovery-codes'])
      assert.equal(
        (await browser.post(`/account/factors/${path}`, {})).headers.location,
        '/login?prompt=login',
        path,
      )
    await browser.get('/account/factors/add')
    assert.equal((await browser.login()).headers.location, '/account/factors/add')
  })

  it('makes recovery codes only for users with a second factor (ACCOUNT-4)', async () => {
    const refused = await (await auth.logIn()).post('/account/factors/recovery-codes', {})
    assert.deepEqual([refused.statusCode, readCodes(refused).length], [409, 0])
  })
})
