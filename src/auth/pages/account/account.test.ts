import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { createSealer } from '../../../store/index.ts'
import { TestAuthServer } from '../../testing/test-auth-server.ts'
import type { TestBrowser } from '../../testing/test-browser.ts'
import { openTestStore } from '../../testing/test-store.ts'
import { beginLogin } from '../../users/login.ts'

const NEW = 'correct horse'
const APP = { client_id: 'app', redirect_uri: 'https://app.example/callback' }

describe('/account', () => {
  const open = openTestStore()
  let auth: TestAuthServer
  let browser: TestBrowser
  before(async () => {
    auth = await TestAuthServer.open(await open())
    browser = await auth.logIn()
  })

  it('needs a login', async () => {
    for (const path of ['/account', '/account/password', '/account/sign-ins'])
      assert.equal((await auth.openBrowser().get(path)).headers.location, '/login', path)
  })

  it('shows the state of each part, and leads to its page (ACCOUNT-5)', async () => {
    await auth.addUser('owner', { display_name: 'Dr. Owner' })
    const own = await auth.logIn('owner')
    const list = async () =>
      [...(await own.get('/account')).body.matchAll(/<li class="part">(.*?)<\/li>/gs)].map(
        ([, part = '']) => [
          /href="([^"]*)"/.exec(part)?.[1],
          part
            .replace(/<[^>]*>|&ensp;/g, ' ')
            .replace(/\s+/g, ' ')
            .trim(),
        ],
      )
    assert.deepEqual(await list(), [
      ['/account/password', 'Password You sign in with a username and a password.'],
      [
        '/account/factors',
        'Two-step sign-in Off Your password alone signs you in. With a second step, such as your phone, a stolen password is not enough.',
      ],
      [
        '/account/factors/add',
        'Passkeys You have none. A passkey signs you in with your fingerprint, face or PIN instead of a password.',
      ],
      ['/account/sign-ins', 'Where you are signed in Only in this browser.'],
      ['/manage', 'Apps with access No app may use a record on your behalf.'],
    ])
    const { id } = await auth.store.db
      .selectFrom('clinician')
      .select('id')
      .where('username', '=', 'owner')
      .executeTakeFirstOrThrow()
    for (const [at, name] of ['MacBook', 'Phone'].entries())
      await auth.store.db
        .insertInto('factor')
        .values({
          id: `owner-${at}`,
          clinician_id: id,
          kind: 'passkey',
          name,
          credential_id: `credential-${at}`,
          created_at: at,
          used_at: null,
        })
        .execute()
    const agent = 'Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:140.0) Gecko/20100101 Firefox/140.0'
    await auth
      .openBrowser()
      .post('/login', { username: 'owner', password: 'sallyport' }, { 'user-agent': agent })
    const parts = Object.fromEntries(await list())
    assert.match(
      parts['/account/factors'] ?? '',
      /^Passkeys MacBook and Phone: each signs you in without a password\.$/,
    )
    assert.match(
      (await own.get('/account')).body,
      /badge--ok">[\s\S]*?On<\/span>[\s\S]*After your password you use MacBook or Phone\. You have no recovery codes left\./,
    )
  })

  it('refuses a password change with a fault, and marks its field (ACCOUNT-1)', async () => {
    for (const [form, status, fault] of [
      [
        { current: 'wrong', next: NEW, again: NEW },
        401,
        /id="current-error">The current password is incorrect/,
      ],
      [{ current: 'sallyport', next: 'short', again: 'short' }, 400, /id="next-error">Use at least 8/],
      [
        { current: 'sallyport', next: 'é'.repeat(40), again: '' },
        400,
        /id="next-error">Use a shorter password: leave out the last 4 of its 40 characters/,
      ],
      [{ current: 'sallyport', next: 'sallyport', again: 'sallyport' }, 400, /id="next-error">Use another/],
      [
        { current: 'sallyport', next: NEW, again: 'other one' },
        400,
        /id="again-error">The two entries differ/,
      ],
    ] as const) {
      const response = await browser.post('/account/password', form)
      assert.equal(response.statusCode, status)
      assert.match(response.body, fault)
      assert.ok(!response.body.includes(`value="${form.next}"`), 'no password is shown again')
    }
  })

  it('changes no password where users sign in with providers only (ACCOUNT-1)', async () => {
    const settings = {
      login: { order: [], passwords: false, secondFactor: 'none' as const, providers: [] },
      developerTools: true,
    }
    const server = await TestAuthServer.open(await open(), { settings })
    const strict = server.openBrowser()
    const context = { ...server, sealer: createSealer('x'), clock: () => server.time.now }
    const id = await server.store.db.transaction().execute(async trx => {
      const account = await trx.selectFrom('clinician').select('id').executeTakeFirstOrThrow()
      return beginLogin({ ...context, rules: server.rules }, trx, { userId: account.id, byTools: {} })
    })
    strict.cookies.set('sallyport-login', id)
    const own = { current: 'sallyport', next: NEW, again: NEW }
    for (const response of [
      await strict.get('/account/password'),
      await strict.post('/account/password', own),
    ]) {
      assert.equal(response.statusCode, 403)
      assert.match(response.body, /You have no password here/)
    }
    assert.doesNotMatch((await strict.get('/account')).body, /account\/password/)
    assert.match((await browser.get('/account')).body, /account\/password/)
  })

  it('limits guesses of the current password like those at the login (ACCOUNT-1)', async () => {
    const other = await TestAuthServer.open(await open())
    const guesser = await other.logIn()
    const form = { current: 'wrong', next: NEW, again: NEW }
    for (let at = 0; at < 10; at++)
      assert.equal((await guesser.post('/account/password', form)).statusCode, 401)
    const refused = await guesser.post('/account/password', { ...form, current: 'sallyport' })
    assert.equal(refused.statusCode, 429)
    assert.ok(Number(refused.headers['retry-after']) > 0)
  })

  it('names the browser and the address of each sign-in (ACCOUNT-2)', async () => {
    await auth.addUser('traveller')
    const own = await auth.logIn('traveller')
    const agent = 'Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:140.0) Gecko/20100101 Firefox/140.0'
    const form = { username: 'traveller', password: 'sallyport' }
    await auth.openBrowser().post('/login', form, { 'user-agent': agent })
    const { body } = await own.get('/account/sign-ins')
    assert.match(body, /Firefox on Windows<\/th><td role="cell" data-label="Address">127\.0\.0\.1</)
    assert.match(body, /Unknown<\/th>/)
  })

  it('lists the sign-ins, and ends one or all others (ACCOUNT-2)', async () => {
    const [second, third] = [await auth.logIn(), await auth.logIn()]
    await auth.addUser('colleague')
    const colleague = await auth.logIn('colleague')
    const { body } = await browser.get('/account/sign-ins')
    assert.equal(body.match(/<tr role="row">/g)?.length, 4)
    assert.equal(body.match(/This browser/g)?.length, 1)
    assert.match(body, /13-Nov-2026 \d\d:\d\d \S+<\/time>/)
    const signIns = [...body.matchAll(/name="signIn" value="([^"]*)"/g)].map(match => match[1] ?? '')
    assert.equal(signIns.length, 2)
    const ended = await browser.post('/account/sign-ins', { signIn: signIns[0] ?? '' })
    assert.equal(ended.statusCode, 303)
    const isSignedIn = async (it: TestBrowser) => (await it.get('/portal')).statusCode === 200
    assert.equal([await isSignedIn(second), await isSignedIn(third)].filter(Boolean).length, 1)
    await browser.post('/account/sign-ins', {})
    assert.deepEqual(await Promise.all([browser, second, third, colleague].map(isSignedIn)), [
      true,
      false,
      false,
      true,
    ])
    await colleague.post('/account/sign-ins', { signIn: signIns[0] ?? '' })
    assert.equal(await isSignedIn(browser), true)
  })

  it('shows the minimum length of the settings, and refuses a shorter password (ACCOUNT-3)', async () => {
    const strict = await TestAuthServer.open(await open(), { settings: { minPasswordLength: 15 } })
    const browser = await strict.logIn()
    assert.match((await browser.get('/account/password')).body, /At least 15 characters\. It may not contain/)
    const change = async (next: string) =>
      browser.post('/account/password', { current: 'sallyport', next, again: next })
    const short = await change('violet acorn 7')
    assert.equal(short.statusCode, 400)
    assert.match(short.body, /Use at least 15 characters\./)
    assert.equal((await change('violet acorn 78')).statusCode, 303)
  })

  it('changes the password, and ends the other sign-ins (ACCOUNT-1)', async () => {
    const other = await auth.logIn()
    const changed = await browser.post('/account/password', { current: 'sallyport', next: NEW, again: NEW })
    assert.equal(changed.headers.location, '/account/password?changed=1')
    assert.match(
      (await browser.get(changed.headers.location)).body,
      /Password changed\.[\s\S]*apps have lost the access that you gave them/,
    )
    assert.match(
      (await browser.get('/account')).body,
      /Password<\/a><\/h2><p class="muted">Changed <time [^>]*>13-Nov-2026 \d\d:\d\d UTC<\/time>\./,
    )
    assert.equal((await other.get('/portal')).headers.location, '/login')
    assert.equal((await auth.openBrowser().login('clinician', 'sallyport')).statusCode, 401)
    assert.equal((await auth.openBrowser().login('clinician', NEW)).headers.location, '/portal')
  })

  it('ends the access of all apps with a new password, except of those that this browser opened and closes (ENDS-1)', async () => {
    await auth.addUser('ada')
    await auth.addClient({ client_id: 'app', scope: 'launch online_access offline_access patient/*.rs' })
    const [own, other] = [await auth.logIn('ada'), await auth.logIn('ada')]
    const refresh = async (token: string) => (await auth.refresh(token, APP)).json().error ?? 'refreshed'
    const open = async (browser: TestBrowser, access: string) => {
      const scope = `launch ${access} patient/*.rs`
      const code = await auth.getCode(browser, { ...APP, scope })
      return String((await auth.exchange(code, APP)).json().refresh_token)
    }
    const kept = await open(own, 'online_access')
    const ended = [
      await open(own, 'offline_access'),
      await open(other, 'online_access'),
      await open(other, 'offline_access'),
    ]
    const form = { current: 'sallyport', next: NEW, again: NEW }
    assert.equal((await own.post('/account/password', form)).statusCode, 303)
    assert.deepEqual(await Promise.all(ended.map(refresh)), Array(3).fill('invalid_grant'))
    assert.equal(await refresh(kept), 'refreshed')
  })
})
