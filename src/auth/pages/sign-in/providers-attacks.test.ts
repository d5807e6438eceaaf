import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { after, before, beforeEach, describe, it } from 'node:test'
import { change, Hospital, signRs256, type Tamper } from '../../../../test/support/hospital.ts'
import { decodeJwt } from '../../../jwt/index.ts'
import { encode } from '../../testing/signing-client.ts'
import type { TestAuthServer } from '../../testing/test-auth-server.ts'
import type { TestBrowser } from '../../testing/test-browser.ts'
import {
  describeSignIn,
  makeProvider,
  openSignInServer,
  signIn,
  startSignIn,
} from '../../testing/test-sign-in.ts'
import { openTestStore } from '../../testing/test-store.ts'

const ADA = { preferred_username: 'ada', name: 'Dr. Ada Byron', fhirUser: 'Practitioner/byron' }

describe('attacks on a sign-in', () => {
  const open = openTestStore()
  let hospital: Hospital
  let auth: TestAuthServer
  before(async () => {
    hospital = await Hospital.start({ users: { 'user-1': ADA } })
    auth = await openSignInServer(await open(), [makeProvider(hospital)])
  })
  after(() => hospital.close())
  beforeEach(() => {
    hospital.tamper = undefined
    auth.time.now = Date.now()
  })

  const now = () => Math.floor(Date.now() / 1000)
  const attempt = async (tamper: Tamper) => {
    hospital.tamper = tamper
    const browser = auth.openBrowser()
    const response = await signIn(browser, hospital, 'user-1')
    assert.equal(browser.cookies.has('sallyport-login'), response.headers.location === '/portal')
    return describeSignIn(response)
  }

  const stranger = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
  const resign = (header: object, sign: (input: string) => string): Tamper => {
    return idToken => {
      const input = `${encode({ kid: 'key-1', typ: 'JWT', ...header })}.${encode({ ...decodeJwt(idToken)?.claims })}`
      return `${input}.${sign(input)}`
    }
  }
  const refused: Readonly<Record<string, Tamper>> = {
    'of another issuer': change({ iss: 'https://evil.example' }),
    'for another client': change({ aud: 'another' }),
    'for several clients without azp': change({ aud: ['sallyport', 'another'] }),
    'with another nonce': change({ nonce: 'another' }),
    'without a nonce': change({ nonce: undefined }),
    'without a subject': change({ sub: undefined }),
    'that has expired': change({ exp: now() - 90, iat: now() - 400 }),
    'that is not valid yet': change({ nbf: now() + 3600 }),
    'signed by a stranger': idToken =>
      signRs256({ alg: 'RS256', kid: 'key-1' }, { ...decodeJwt(idToken)?.claims }, stranger),
    'with alg none': resign({ alg: 'none' }, () => ''),
    'with alg none and a signature': resign({ alg: 'none' }, () => 'AAAA'),
    'with alg HS256': resign({ alg: 'HS256' }, () => 'AAAA'),
    'without a kid': resign({ alg: 'RS256', kid: undefined }, () => 'AAAA'),
    'that is no token': () => 'nonsense',
  }
  for (const [name, tamper] of Object.entries(refused))
    it(`refuses an id_token ${name} (SIGNIN-4)`, async () => {
      assert.equal(await attempt(tamper), '502 bad-response')
    })

  it('accepts clocks that differ by less than 60 s (SIGNIN-4)', async () => {
    assert.equal(await attempt(change({ exp: now() - 50 })), '302 /portal')
    assert.equal(await attempt(change({ iat: now() + 50, nbf: now() + 50 })), '302 /portal')
  })

  it('refuses signatures with alg none even if the provider announces it (SIGNIN-4)', async () => {
    hospital.metadata = { id_token_signing_alg_values_supported: ['none', 'HS256'] }
    const hostile = await openSignInServer(await open(), [makeProvider(hospital)])
    hospital.metadata = {}
    hospital.tamper = resign({ alg: 'none' }, () => 'AAAA')
    assert.equal(describeSignIn(await signIn(hostile.openBrowser(), hospital, 'user-1')), '502 bad-response')
  })

  it('fetches the keys at once for an unknown kid, and at most once in 5 s (SIGNIN-4)', async () => {
    const count = () => hospital.requests.filter(path => path === '/jwks').length
    assert.equal(await attempt(idToken => idToken), '302 /portal')
    auth.time.now += 10_000
    hospital.publishedKeys = ['key-1', 'key-2']
    const before = count()
    assert.equal(
      await attempt((idToken, sign) => sign({ ...decodeJwt(idToken)?.claims }, 'key-2')),
      '302 /portal',
    )
    assert.equal(count(), before + 1)
    for (const kid of ['key-8', 'key-9'])
      assert.equal(
        await attempt((idToken, sign) => sign({ ...decodeJwt(idToken)?.claims }, kid)),
        '502 bad-response',
      )
    assert.equal(count(), before + 1)
    hospital.publishedKeys = ['key-1']
  })

  it('refuses a callback that is sent again, was never started, or has no state (SIGNIN-3)', async () => {
    const browser = auth.openBrowser()
    const callback = await hospital.authorize(await startSignIn(browser), 'user-1')
    const cookies = new Map(browser.cookies)
    assert.equal(describeSignIn(await browser.get(callback)), '302 /portal')
    for (const [name, value] of cookies) browser.cookies.set(name, value)
    assert.equal(describeSignIn(await browser.get(callback)), '400 expired')
    assert.equal(describeSignIn(await browser.get('/login/callback?code=x&state=y')), '400 expired')
    assert.equal(describeSignIn(await browser.get('/login/callback')), '400 expired')
  })

  it('refuses a callback in another browser (login CSRF), which does not end the sign-in of the first (SIGNIN-3)', async () => {
    const attacker = auth.openBrowser()
    const callback = await hospital.authorize(await startSignIn(attacker), 'user-1')
    const victim = auth.openBrowser()
    await startSignIn(victim)
    assert.equal(describeSignIn(await victim.get(callback)), '400 expired')
    assert.equal(victim.cookies.has('sallyport-login'), false)
    assert.equal(describeSignIn(await attacker.get(callback)), '302 /portal')
  })

  it('refuses a sign-in that took longer than 10 minutes (SIGNIN-3)', async () => {
    const browser = auth.openBrowser()
    const callback = await hospital.authorize(await startSignIn(browser), 'user-1')
    auth.time.now += 10 * 60_000
    assert.equal(describeSignIn(await browser.get(callback)), '400 expired')
  })

  it('gives the login a new id (session fixation) (SIGNIN-3)', async () => {
    const browser = auth.openBrowser()
    browser.cookies.set('sallyport-login', 'planted-by-someone-else')
    await signIn(browser, hospital, 'user-1')
    const first = browser.cookies.get('sallyport-login')
    assert.notEqual(first, 'planted-by-someone-else')
    await signIn(browser, hospital, 'user-1')
    assert.notEqual(browser.cookies.get('sallyport-login'), first)
  })

  it('refuses a code that the attacker injects into another sign-in (SIGNIN-3)', async () => {
    const victim = await hospital.authorize(await startSignIn(auth.openBrowser()), 'user-1')
    const attacker = auth.openBrowser()
    const own = new URL(await hospital.authorize(await startSignIn(attacker), 'user-1'))
    own.searchParams.set('code', new URL(victim).searchParams.get('code') ?? '')
    assert.equal(describeSignIn(await attacker.get(own.href)), '502 bad-response')
  })

  const badCallbacks: Readonly<Record<string, (query: URLSearchParams) => void>> = {
    'an id_token': query => query.set('id_token', 'eyJ'),
    'a token': query => query.set('token', 'x'),
    'an access token': query => query.set('access_token', 'x'),
    'a response of another mode': query => query.set('response', 'eyJ'),
    'two codes': query => query.append('code', 'x'),
    'no code': query => query.delete('code'),
    'the iss of another issuer': query => query.set('iss', 'https://evil.example'),
    'an empty iss': query => query.set('iss', ''),
  }
  for (const [name, change] of Object.entries(badCallbacks))
    it(`refuses a callback URL with ${name} as bad input, and requests no token (SIGNIN-3)`, async () => {
      const browser = auth.openBrowser()
      const url = new URL(await hospital.authorize(await startSignIn(browser), 'user-1'))
      change(url.searchParams)
      hospital.requests.length = 0
      assert.equal(describeSignIn(await browser.get(url.href)), '400 bad-callback')
      assert.equal(hospital.requests.includes('/token'), false)
    })

  for (const url of ['javascript:alert(1)', 'data:text/html,x', '//', 'not a URL', 7])
    it(`is not available if the authorization endpoint is ${url} (SIGNIN-10)`, async () => {
      hospital.metadata = { authorization_endpoint: url }
      const hostile = await openSignInServer(await open(), [makeProvider(hospital)])
      const response = await hostile.openBrowser().get('/login/providers/hospital')
      hospital.metadata = {}
      assert.equal(describeSignIn(response), '503 unreachable')
    })

  it('limits the cookies and the sign-ins in progress (SIGNIN-10)', async () => {
    const browser = auth.openBrowser()
    for (let at = 0; at < 15; at++) await startSignIn(browser)
    assert.equal([...browser.cookies.keys()].filter(name => name.startsWith('sallyport-sign-in-')).length, 10)
    const row = { browser_hash: 'b', request_sealed: 's', expires_at: auth.time.now + 1000 }
    const { network_hash } = await auth.store.db
      .selectFrom('pending_sign_in')
      .select('network_hash')
      .executeTakeFirstOrThrow()
    await auth.store.db
      .insertInto('pending_sign_in')
      .values(Array.from({ length: 2000 }, (_, at) => ({ ...row, network_hash, state_hash: `${at}` })))
      .execute()
    assert.equal(describeSignIn(await browser.get('/login/providers/hospital')), '503 busy')
    await auth.store.db.deleteFrom('pending_sign_in').where('browser_hash', '=', 'b').execute()
  })

  it('refuses an endless response of a hostile provider (SIGNIN-10)', async () => {
    hospital.metadata = { claims_supported: ['x'.repeat(600_000)] }
    const hostile = await openSignInServer(await open(), [makeProvider(hospital)])
    assert.equal(
      describeSignIn(await hostile.openBrowser().get('/login/providers/hospital')),
      '503 unreachable',
    )
    hospital.metadata = { issuer: 'https://evil.example' }
    hostile.time.now += 10_000
    assert.equal(
      describeSignIn(await hostile.openBrowser().get('/login/providers/hospital')),
      '503 unreachable',
    )
    hospital.metadata = {}
  })
})

describe('a mix-up of two providers', () => {
  const open = openTestStore()
  let honest: Hospital
  let hostile: Hospital
  before(async () => {
    const users = { 'user-1': ADA }
    const url = 'http://localhost:9000/login/callback'
    honest = await Hospital.start({ users, callbacks: [url, `${url}/honest`] })
    hostile = await Hospital.start({ users, callbacks: [url, `${url}/hostile`] })
  })
  after(() => Promise.all([honest.close(), hostile.close()]))

  const openServer = async () =>
    openSignInServer(await open(), [
      makeProvider(honest, { id: 'honest' }),
      makeProvider(hostile, { id: 'hostile' }),
    ])

  /** The hostile provider sends the browser on to the honest one, with our own state. */
  const redirectToHonest = (url: string, redirectUri?: string) => {
    const forwarded = new URL(url)
    forwarded.port = new URL(honest.issuer).port
    if (redirectUri !== undefined) forwarded.searchParams.set('redirect_uri', redirectUri)
    return honest.authorize(forwarded.href, 'user-1')
  }

  it('is recognized by the iss of the response, and the code never reaches the hostile provider (SIGNIN-5)', async () => {
    const auth = await openServer()
    const browser = auth.openBrowser()
    const url = await startSignIn(browser, '/login/providers/hostile')
    assert.equal(new URL(url).searchParams.get('redirect_uri'), 'http://localhost:9000/login/callback')
    assert.equal(describeSignIn(await browser.get(await redirectToHonest(url))), '400 bad-callback')
    assert.equal(hostile.requests.includes('/token'), false)
    const signedIn = await signIn(browser, honest, 'user-1', '/login/providers/honest')
    assert.equal(describeSignIn(signedIn), '302 /portal')
  })

  it('is recognized by a callback for each provider that sends no iss (SIGNIN-5)', async () => {
    for (const hospital of [honest, hostile])
      hospital.metadata = { authorization_response_iss_parameter_supported: false }
    const auth = await openServer()
    const browser = auth.openBrowser()
    const url = await startSignIn(browser, '/login/providers/hostile')
    assert.equal(
      new URL(url).searchParams.get('redirect_uri'),
      'http://localhost:9000/login/callback/hostile',
    )
    const callback = new URL(await redirectToHonest(url, 'http://localhost:9000/login/callback/honest'))
    callback.searchParams.delete('iss')
    assert.equal(describeSignIn(await browser.get(callback.href)), '400 bad-callback')
    assert.equal(hostile.requests.includes('/token'), false)
    const signedIn = await signIn(browser, honest, 'user-1', '/login/providers/honest')
    assert.equal(describeSignIn(signedIn), '302 /portal')
  })

  it('is recognized although the provider withdraws its iss, or the settings the other provider, meanwhile (SIGNIN-5)', async () => {
    const announce = (supported: boolean) => {
      for (const hospital of [honest, hostile])
        hospital.metadata = { authorization_response_iss_parameter_supported: supported }
    }
    const finish = async (server: TestAuthServer, started: TestBrowser, callback: string) => {
      const browser = server.openBrowser()
      for (const [name, value] of started.cookies) browser.cookies.set(name, value)
      return describeSignIn(await browser.get(callback))
    }
    for (const iss of ['', '&iss=']) {
      announce(true)
      const auth = await openServer()
      const browser = auth.openBrowser()
      const start = () => startSignIn(browser, '/login/providers/hostile')
      const callbacks = [await redirectToHonest(await start()), await redirectToHonest(await start())]
      const [withdrawn = '', removed = ''] = callbacks.map(url => url.replace(/&iss=[^&]*/, iss))
      const alone = await openSignInServer(auth.store, [makeProvider(hostile, { id: 'hostile' })])
      announce(false)
      auth.time.now += 11_000
      await startSignIn(auth.openBrowser(), '/login/providers/hostile')
      const refused = [await finish(auth, browser, withdrawn), await finish(alone, browser, removed)]
      assert.equal(hostile.requests.includes('/token'), false)
      assert.deepEqual(refused, ['400 bad-callback', '400 bad-callback'])
    }
    announce(true)
  })

  it('ends a sign-in if the settings name another issuer under the same id meanwhile (SIGNIN-5)', async () => {
    const auth = await openServer()
    const browser = auth.openBrowser()
    const callback = await honest.authorize(await startSignIn(browser, '/login/providers/honest'), 'user-1')
    const later = await openSignInServer(auth.store, [makeProvider(hostile, { id: 'honest' })])
    const same = later.openBrowser()
    for (const [name, value] of browser.cookies) same.cookies.set(name, value)
    assert.equal(describeSignIn(await same.get(callback)), '400 expired')
    assert.equal(hostile.requests.includes('/token'), false)
  })

  it('does not let one provider sign in users of the other (SIGNIN-6)', async () => {
    const auth = await openServer()
    await signIn(auth.openBrowser(), honest, 'user-1', '/login/providers/honest')
    const other = await signIn(auth.openBrowser(), hostile, 'user-1', '/login/providers/hostile')
    assert.equal(describeSignIn(other), '403 username-taken')
  })
})
