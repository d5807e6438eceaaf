import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, beforeEach, describe, it } from 'node:test'
import { Hospital, signRs256 } from '../../../../test/support/hospital.ts'
import { rsaPair } from '../../../../test/support/rsa-pair.ts'
import { createAuditor, findRecords } from '../../../audit/index.ts'
import { type Claims, decodeJwt } from '../../../jwt/index.ts'
import { readDetails } from '../../base/audit.ts'
import { computeRevocationKey } from '../../oauth/revocation/list.ts'
import { readForm } from '../../testing/read-form.ts'
import type { TestAuthServer } from '../../testing/test-auth-server.ts'
import type { TestBrowser } from '../../testing/test-browser.ts'
import { makeProvider, openSignInServer, startSignIn } from '../../testing/test-sign-in.ts'
import { openTestStore } from '../../testing/test-store.ts'
import { LOGOUT_TOKENS } from '../../words/sign-in.ts'

const users = {
  'user-1': { preferred_username: 'ada', fhirUser: 'Practitioner/byron' },
  'user-2': { preferred_username: 'grace', fhirUser: 'Practitioner/lovelace' },
}
const CALLBACK = 'https://app.example/callback'
const SCOPE = 'openid fhirUser online_access'

/** The others: a token that is used twice, and a provider that does not answer. */
type ForgedReason = Exclude<keyof typeof LOGOUT_TOKENS, 'logout-token-used' | 'logout-token-keys-unreachable'>

describe('the logout of a provider’s user', () => {
  const open = openTestStore()
  let hospital: Hospital
  let auth: TestAuthServer
  let jar: Map<string, string>
  before(async () => {
    hospital = await Hospital.start({ users })
    const store = await open()
    const audit = createAuditor({ store, failure: 'refuse' })
    auth = await openSignInServer(store, [makeProvider(hospital)], { audit })
    const post_logout_redirect_uris = '["https://app.example/bye"]'
    await auth.addClient({ client_id: 'app', scope: `${SCOPE} offline_access`, post_logout_redirect_uris })
  })
  after(() => hospital.close())
  beforeEach(async () => {
    jar = new Map()
    hospital.logoutTokens.length = 0
    auth.time.now = Date.now()
    await (await auth.store.trail.read()).deleteFrom('audit_event').execute()
  })

  const signIn = async (user = 'user-1') => {
    const browser = auth.openBrowser()
    await browser.get(await hospital.authorize(await startSignIn(browser), user, jar))
    assert(await isSignedIn(browser))
    return browser
  }
  const isSignedIn = async (browser: TestBrowser) =>
    (await browser.get('/portal')).headers.location === undefined
  const getTokens = async (browser: TestBrowser, scope = SCOPE) => {
    const done = await auth.authorize(browser, { client_id: 'app', redirect_uri: CALLBACK, scope })
    const code = new URL(done.headers.location ?? '').searchParams.get('code') ?? ''
    return (await auth.exchange(code, { client_id: 'app', redirect_uri: CALLBACK })).json()
  }
  const canRefresh = async (token: string) =>
    (await auth.refresh(token, { client_id: 'app' })).statusCode === 200
  const sendToken = async (logout_token: string) => {
    const response = await auth.openBrowser().post('/login/backchannel-logout', { logout_token })
    return response.statusCode === 200 ? 'ended' : response.json().error_description
  }
  /** Ends the session at the provider, and returns the logout token that it sends. */
  const endAtProvider = async () => {
    await hospital.follow(
      `${hospital.issuer}/session/end?client_id=sallyport&post_logout_redirect_uri=${encodeURIComponent('http://localhost:9000/login/logged-out')}`,
      jar,
    )
    return hospital.logoutTokens.at(-1) ?? ''
  }

  for (const url of ['javascript:alert(1)', 'data:text/html,x', 'http://', 'not a URL', '', 7])
    it(`ends without a step at the provider if its end_session_endpoint is ${JSON.stringify(url)} (SIGNIN-11)`, async () => {
      hospital.metadata = { end_session_endpoint: url }
      const server = await openSignInServer(auth.store, [makeProvider(hospital)])
      const browser = server.openBrowser()
      await browser.get(await hospital.authorize(await startSignIn(browser), 'user-1', jar))
      assert(await isSignedIn(browser))
      const response = await browser.post('/logout', {})
      hospital.metadata = {}
      assert.deepEqual([response.statusCode, response.headers.location], [302, '/login?signed-out=1'])
      assert.equal(await isSignedIn(browser), false)
    })

  it('asks the provider to send its token again while its keys cannot be fetched (SIGNIN-11)', async () => {
    const store = await open()
    const provider = { ...makeProvider(hospital), issuer: 'http://127.0.0.1:1' }
    const server = await openSignInServer(store, [provider], { audit: createAuditor({ store }) })
    const logout_token = hospital.sign({ iss: provider.issuer })
    const response = await server.openBrowser().post('/login/backchannel-logout', { logout_token })
    assert.deepEqual([response.statusCode, response.json().error], [503, 'temporarily_unavailable'])
    const [last] = await findRecords(store, { events: [{ kind: 'logout' }], limit: 1 })
    assert.equal(readDetails(last?.details ?? null).reason, 'logout-token-keys-unreachable')
  })

  it('also ends the session at the provider (SIGNIN-11)', async () => {
    const browser = await signIn()
    const page = await browser.post('/logout', {})
    assert.equal(await isSignedIn(browser), false)
    const action = /action="([^"]+)"/.exec(page.body.slice(page.body.indexOf('<main')))?.[1] ?? ''
    assert.equal(action, `${hospital.issuer}/session/end`)
    assert.match(
      String(page.headers['content-security-policy']),
      new RegExp(`form-action 'self' ${hospital.issuer}`),
    )
    const form = readForm(page.body, 'get')
    assert.equal(decodeJwt(form.get('id_token_hint') ?? '')?.claims.sub, 'user-1')
    assert.equal(await hospital.follow(`${action}?${form}`, jar), 'http://localhost:9000/login/logged-out')
    const { location } = (await browser.get('/login/logged-out')).headers
    assert.equal(location, '/login?signed-out=1')
    assert.equal(hospital.logoutTokens.length, 1)
  })

  it('returns to the app that asked for the logout, and to no other site (SIGNIN-11)', async () => {
    const browser = await signIn()
    const { id_token } = await getTokens(browser)
    const query = new URLSearchParams({
      id_token_hint: id_token,
      post_logout_redirect_uri: 'https://app.example/bye',
    })
    const form = readForm((await browser.get(`/oauth2/logout?${query}`)).body, 'get')
    const back = new URL(await hospital.follow(`${hospital.issuer}/session/end?${form}`, jar))
    assert.equal((await browser.get(back.href)).headers.location, 'https://app.example/bye')
    const forged = await browser.get('/login/logged-out?state=https%3A%2F%2Fevil.example')
    assert.equal(forged.headers.location, '/login?signed-out=1')
  })

  it('at the provider ends the login and online grants here, and no others (SIGNIN-12)', async () => {
    const others = await signIn('user-2')
    jar = new Map()
    const browser = await signIn()
    const [online, offline, ofOthers] = [
      await getTokens(browser),
      await getTokens(browser, 'openid offline_access'),
      await getTokens(others),
    ]
    assert.equal(await sendToken(await endAtProvider()), 'ended')
    assert.deepEqual([await isSignedIn(browser), await isSignedIn(others)], [false, true])
    assert.deepEqual(
      [
        await canRefresh(online.refresh_token),
        await canRefresh(offline.refresh_token),
        await canRefresh(ofOthers.refresh_token),
      ],
      [false, true, true],
    )
    // FHIR servers fetch this list at least every 5 s.
    const { revoked } = (await auth.openBrowser().get('/oauth2/revocations?since=0')).json()
    assert(revoked.includes(computeRevocationKey(online.launch_id)))
    const records = await (await auth.store.trail.read())
      .selectFrom('audit_event')
      .select(['fhir_user', 'reason'])
      .where('kind', '=', 'logout')
      .execute()
    assert.deepEqual(records, [{ fhir_user: 'Practitioner/byron', reason: 'Signed out by hospital' }])
  })

  it('is refused with a logout token that was used before (SIGNIN-12)', async () => {
    await signIn()
    const token = await endAtProvider()
    assert.equal(await sendToken(token), 'ended')
    jar = new Map()
    const browser = await signIn()
    assert.equal(await sendToken(token), 'The logout_token was used before')
    assert.equal(await isSignedIn(browser), true)
  })

  it('is refused with a forged logout token (SIGNIN-12)', async () => {
    const browser = await signIn()
    const seconds = () => Math.floor(auth.time.now / 1000)
    const events = { 'http://schemas.openid.net/event/backchannel-logout': {} }
    const make = (changes: Claims = {}) => ({
      iss: hospital.issuer,
      aud: 'sallyport',
      iat: seconds(),
      exp: seconds() + 120,
      jti: randomUUID(),
      sub: 'user-1',
      events,
      ...changes,
    })
    const header = { alg: 'RS256', kid: 'key-1', typ: 'logout+jwt' }
    const forged: Readonly<Record<ForgedReason, () => string>> = {
      'logout-token-issuer-unknown': () => hospital.sign(make({ iss: 'https://evil.example' })),
      'logout-token-signature-invalid': () => signRs256(header, make(), rsaPair(2).privateKey),
      'logout-token-of-another-audience': () => hospital.sign(make({ aud: 'another' })),
      'logout-token-iat-wrong': () => hospital.sign(make({ iat: seconds() + 90 })),
      'logout-token-expired': () => hospital.sign(make({ exp: seconds() - 90 })),
      'logout-token-without-jti': () => hospital.sign(make({ jti: undefined })),
      'logout-token-without-event': () => hospital.sign(make({ events: {} })),
      'logout-token-with-nonce': () => hospital.sign(make({ nonce: 'x' })),
      'logout-token-without-subject': () => hospital.sign(make({ sub: undefined })),
    }
    const sentences = new Map(
      Object.entries(LOGOUT_TOKENS).map(([reason, { sentence }]) => [reason, sentence]),
    )
    for (const [reason, sign] of Object.entries(forged)) {
      // Repeated anonymous requests are only counted within a minute.
      auth.time.now += 60_000
      assert.equal(await sendToken(sign()), sentences.get(reason))
      const [last] = await findRecords(auth.store, { events: [{ kind: 'logout' }], limit: 1 })
      assert.equal(readDetails(last?.details ?? null).reason, reason)
    }
    const unsigned = `${Buffer.from('{"alg":"none"}').toString('base64url')}.${Buffer.from(JSON.stringify(make())).toString('base64url')}.AAAA`
    assert.equal(await sendToken(unsigned), 'The signature of the logout_token is invalid')
    assert.equal(await sendToken(hospital.sign(make({ sub: undefined, sid: 'another' }))), 'ended')
    assert.equal(await isSignedIn(browser), true)
    assert.equal(await sendToken(hospital.sign(make())), 'ended')
    assert.equal(await isSignedIn(browser), false)
  })
})
