import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { countRuns } from '../../test/support/thorough.ts'
import { parsePassedOperation, type Refused } from '../fhir/index.ts'
import { createInterceptor, type InterceptorOptions } from './interceptor.ts'
import { authUrl, encode, fhirBaseUrl, makeKey, TestIssuer } from './testing/test-issuer.ts'

const auth = new TestIssuer()

function make(options: Partial<InterceptorOptions> = {}, server = auth) {
  return createInterceptor({ authUrl, fhirBaseUrl, fetch: server.fetch, clock: server.clock, ...options })
}

const interceptor = make()

async function getRefusal(authorization: string | undefined, guard = interceptor): Promise<Refused> {
  const answer = await guard.authenticate(authorization)
  assert.equal(answer.allowed, false, 'the token was accepted')
  return answer
}

describe('createInterceptor', () => {
  it('accepts a valid access token and returns its grant (BEARER-1)', async () => {
    const fhirUser = `${fhirBaseUrl}/Practitioner/p1`
    const caller = await interceptor.authenticate(
      auth.bearer({ fhirUser, scope: ['openid', 'patient/Condition.rs'] }),
    )
    assert(caller.allowed)
    assert.equal(caller.grant.patient, '1')
    const { subject, clientId, tokenId } = caller.grant
    assert.deepEqual([subject, clientId, tokenId], ['c-1', 'app', 'j-1'])
    assert.deepEqual(caller.grant.fhirUser, { type: 'Practitioner', id: 'p1' })
    assert.deepEqual(
      caller.grant.scopes.map(scope => scope.text),
      ['openid', 'patient/Condition.rs'],
    )
    const getScope = (decision: ReturnType<typeof caller.decide>) => decision.allowed && decision.by
    assert.equal(
      getScope(caller.decide({ kind: 'search-type', type: 'Condition', params: [] })),
      'patient/Condition.rs',
    )
    assert.equal(
      getScope(caller.decide({ kind: 'read', type: 'Practitioner', id: 'p1', params: [] })),
      'fhirUser',
    )
    assert(!caller.decide({ kind: 'search-type', type: 'Observation', params: [] }).allowed)
  })

  it('compares the scheme without regard to case', async () => {
    for (const scheme of ['bearer', 'BEARER', 'bEaReR'])
      assert((await interceptor.authenticate(`${scheme} ${auth.token()}`)).allowed, scheme)
  })

  for (const authorization of [undefined, '', 'Bearer', 'Bearer ', 'Basic YTpi', 'Bearerx abc', 'token'])
    it(`says that a bearer token is needed to ${JSON.stringify(authorization)} (BEARER-4)`, async () => {
      assert.deepEqual(await getRefusal(authorization), {
        allowed: false,
        reason: 'no-bearer',
        status: 401,
        headers: { 'www-authenticate': 'Bearer' },
        outcome: {
          resourceType: 'OperationOutcome',
          issue: [
            {
              severity: 'error',
              code: 'login',
              details: {
                text: 'Missing or non-Bearer Authorization header. All FHIR requests need a SMART access token.',
              },
              diagnostics:
                'Missing or non-Bearer Authorization header. All FHIR requests need a SMART access token.',
            },
          ],
        },
      })
    })

  const seconds = Math.floor(auth.now / 1000)
  const [head = '', body = '', signature = ''] = auth.token().split('.')
  const publicPem = auth.keys[0]?.publicKey.export({ type: 'spki', format: 'pem' }) ?? ''
  const unsigned = `${encode({ alg: 'none', typ: 'at+jwt', kid: auth.keys[0]?.kid })}.${body}`
  const hs256 = `${encode({ alg: 'HS256', typ: 'at+jwt', kid: auth.keys[0]?.kid })}.${body}`
  const stranger = { ...makeKey(), kid: auth.keys[0]?.kid ?? '' }
  const BAD: Record<string, string> = {
    'junk bytes': '\u0001\u00ff%%%',
    'no JWT': 'abc',
    'two parts': `${head}.${body}`,
    'four parts': `${head}.${body}.${signature}.${signature}`,
    'a header that is no JSON': `abc.${body}.${signature}`,
    'claims that are no object': `${head}.${encode([1])}.${signature}`,
    'two tokens': `${auth.token()}, Bearer ${auth.token()}`,
    'alg none': `${unsigned}.`,
    'alg none with a signature': `${unsigned}.${signature}`,
    'HS256 with the public key': `${hs256}.${createHmac('sha256', publicPem).update(hs256).digest('base64url')}`,
    'alg RS512': auth.token({}, { alg: 'RS512' }),
    'alg in another case': auth.token({}, { alg: 'rs256' }),
    'an id_token': auth.token({ aud: 'app' }, { typ: 'JWT' }),
    'an id_token for this server': auth.token({}, { typ: 'JWT' }),
    'no typ': auth.token({}, { typ: undefined }),
    'no kid': auth.token({}, { kid: undefined }),
    'an unknown kid': auth.token({}, { kid: 'other' }),
    'a kid that is a prototype': auth.token({}, { kid: '__proto__' }),
    'a critical header': auth.token({}, { crit: ['b64'], b64: false }),
    'a foreign key under our kid': auth.token({}, {}, stranger),
    'another issuer': auth.token({ iss: 'http://evil.example' }),
    'no issuer': auth.token({ iss: undefined }),
    'another audience': auth.token({ aud: 'http://localhost:8080/other' }),
    'an audience that starts alike': auth.token({ aud: `${fhirBaseUrl}2` }),
    'no audience': auth.token({ aud: undefined }),
    'an empty list of audiences': auth.token({ aud: [] }),
    'no exp': auth.token({ exp: undefined }),
    'exp as a text': auth.token({ exp: String(seconds + 300) }),
    'nbf to come': auth.token({ nbf: seconds + 60 }),
    'nbf as a text': auth.token({ nbf: String(seconds) }),
    'a changed claim': `${head}.${encode({ ...JSON.parse(Buffer.from(body, 'base64url').toString()), patient: '2' })}.${signature}`,
    'a token that is too long': auth.token({ scope: 'patient/Condition.rs '.repeat(600) }),
  }
  for (const [name, token] of Object.entries(BAD))
    it(`refuses ${name} (BEARER-6)`, async () => {
      const { status, headers, outcome } = await getRefusal(`Bearer ${token}`)
      assert.equal(status, 401)
      assert.equal(headers['www-authenticate'], 'Bearer error="invalid_token"')
      assert.equal(outcome.issue[0]?.code, 'login')
      assert.equal(JSON.stringify(outcome).includes(token), false)
    })

  it('says that an expired token has expired (BEARER-6)', async () => {
    const { status, headers, outcome } = await getRefusal(auth.bearer({ exp: seconds }))
    assert.equal(status, 401)
    assert.equal(headers['www-authenticate'], 'Bearer error="invalid_token"')
    assert.equal(outcome.issue[0]?.code, 'expired')
  })

  it('says in the diagnostics which check a token failed, and shows nothing of the token (BEARER-6)', async () => {
    const revoking = make({ revoked: () => true })
    for (const [token, why, guard] of [
      ['abc', 'it is not a JWT'],
      [auth.token({}, { alg: 'RS512' }), 'alg is not RS256'],
      [auth.token({}, { typ: 'JWT' }), 'typ is not at+jwt'],
      [auth.token({ iss: 'http://evil.example' }), `iss is not ${authUrl}`],
      [auth.token({ aud: 'http://evil.example' }), `aud is not ${fhirBaseUrl}`],
      [auth.token({ nbf: seconds + 60 }), 'nbf is to come'],
      [auth.token({}, { kid: 'evil' }), 'kid is not a key of the issuer'],
      [auth.token({}, {}, stranger), 'the signature is wrong'],
      [auth.token(), 'it was revoked', revoking],
    ] as const) {
      const { outcome } = await getRefusal(`Bearer ${token}`, guard)
      const text = 'The access token is not valid on this FHIR server.'
      assert.equal(outcome.issue[0]?.details.text, text)
      assert.equal(outcome.issue[0]?.diagnostics, `${text} The token is not accepted: ${why}.`)
      assert.doesNotMatch(JSON.stringify(outcome), /evil/)
    }
  })

  it('accepts unusual but valid tokens', async () => {
    for (const [claims, header] of [
      [{ aud: ['x', fhirBaseUrl] }, {}],
      [{ aud: `${fhirBaseUrl}/` }, {}],
      [{}, { typ: 'application/at+jwt' }],
      [{}, { typ: 'AT+JWT' }],
      [{ nbf: seconds + 4 }, {}],
    ] as const)
      assert(
        (await interceptor.authenticate(auth.bearer(claims, header))).allowed,
        JSON.stringify({ claims, header }),
      )
  })

  it('ignores an unreadable patient or fhirUser claim (BEARER-12)', async () => {
    for (const claims of [
      { patient: 'Patient/1', fhirUser: 'http://other.example/fhir/Practitioner/1' },
      { patient: ['1'], fhirUser: 'Organization/1' },
      { patient: '', fhirUser: '' },
      { patient: '..', fhirUser: 1 },
    ]) {
      const caller = await interceptor.authenticate(auth.bearer(claims))
      assert(caller.allowed)
      assert.equal(caller.grant.patient, undefined)
      assert.equal(caller.grant.fhirUser, undefined)
    }
  })

  it('never throws and never accepts, whatever the header contains (BEARER-14)', async () => {
    const anything = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.string().map(text => `Bearer ${text}`),
      fc.base64String().map(text => `Bearer ${text}.${text}.${text}`),
      fc.json().map(text => `Bearer ${Buffer.from(text).toString('base64url')}.${body}.${signature}`),
    )
    await fc.assert(
      fc.asyncProperty(anything, async text => {
        assert.equal((await getRefusal(text)).status, 401)
      }),
      { numRuns: countRuns(1000) },
    )
  })

  it('verifies a token once, and never again while it is cached', async () => {
    let verified = 0
    const counting = make({ verify: () => Boolean(++verified) })
    const authorization = auth.bearer()
    for (let i = 0; i < 100; i++) assert((await counting.authenticate(authorization)).allowed)
    assert.equal(verified, 1)
  })

  it('verifies no signature of a token with invalid claims, and that of an expired one once', async () => {
    let verified = 0
    const counting = make({ verify: () => Boolean(++verified) })
    await counting.authenticate(auth.bearer({ iss: 'http://evil.example' }))
    assert.equal(verified, 0)
    const expired = auth.bearer({ exp: seconds - 1 })
    for (let i = 0; i < 3; i++) assert.equal((await counting.authenticate(expired)).allowed, false)
    assert.equal(verified, 1)
  })

  it('rejects a cached token once it has expired', async () => {
    const server = new TestIssuer()
    const guard = make({}, server)
    const authorization = server.bearer()
    server.now += 299_999
    assert((await guard.authenticate(authorization)).allowed)
    server.now += 1
    assert.equal((await getRefusal(authorization, guard)).outcome.issue[0]?.code, 'expired')
    assert.equal((await getRefusal(authorization, guard)).outcome.issue[0]?.code, 'expired')
  })

  it('reports the grant of a revoked or expired token to the audit trail, and of no other', async () => {
    const server = new TestIssuer()
    const stranger = { ...makeKey(), kid: server.keys[0]?.kid ?? '' }
    const revoked = new Set<string | undefined>()
    const guard = make({ revoked: grant => revoked.has(grant.tokenId) }, server)
    const heldBy = async (authorization: string) => {
      const answer = await guard.authenticate(authorization)
      assert.equal(answer.allowed, false, 'the token was accepted')
      return (
        answer.rejectedGrant && [
          answer.rejectedGrant.clientId,
          answer.rejectedGrant.subject,
          answer.rejectedGrant.tokenId,
        ]
      )
    }
    const authorization = server.bearer({ jti: 'l-1.t' })
    assert((await guard.authenticate(authorization)).allowed)
    revoked.add('l-1.t')
    assert.deepEqual(await heldBy(authorization), ['app', 'c-1', 'l-1.t'])
    server.now += 300_000
    for (const _ of ['once', 'again']) assert.deepEqual(await heldBy(authorization), ['app', 'c-1', 'l-1.t'])
    for (const _ of ['first seen', 'again'])
      assert.deepEqual(await heldBy(server.bearer({ jti: 'l-5.t', exp: seconds - 1 })), [
        'app',
        'c-1',
        'l-5.t',
      ])
    for (const unproven of [
      `Bearer ${server.token({ jti: 'l-2.t' }, {}, stranger)}`,
      `Bearer ${server.token({ jti: 'l-3.t', exp: seconds - 1 }, {}, stranger)}`,
      server.bearer({ jti: 'l-4.t', aud: 'http://other.example' }),
      'Bearer nonsense',
    ])
      assert.equal(await heldBy(unproven), undefined)
  })

  it('checks on every request whether the grant was revoked', async () => {
    const revoked = new Set<string | undefined>()
    const guard = make({ revoked: grant => revoked.has(grant.tokenId) })
    const authorization = auth.bearer({ jti: 'j-9' })
    assert((await guard.authenticate(authorization)).allowed)
    revoked.add('j-9')
    assert.equal((await getRefusal(authorization, guard)).status, 401)
  })

  it('refuses after an internal error, and reports it to the host (BEARER-14)', async () => {
    const errors: unknown[] = []
    const guard = make({
      onError: error => errors.push(error),
      revoked: () => {
        throw new Error('store unreachable')
      },
    })
    assert.equal((await getRefusal(auth.bearer(), guard)).status, 500)
    assert.equal(errors.length, 1)
  })

  it('refuses if a decision throws', async () => {
    const guard = make({
      contexts: ['user'],
      userFilter: () => {
        throw new Error('policy broken')
      },
    })
    const caller = await guard.authenticate(
      auth.bearer({ scope: 'user/Condition.rs', fhirUser: 'Practitioner/1' }),
    )
    assert(caller.allowed)
    const answer = caller.decide({ kind: 'search-type', type: 'Condition', params: [] })
    assert(!answer.allowed)
    assert.equal(answer.status, 500)
  })

  it('decides by the operations that the server offers', async () => {
    const meta = parsePassedOperation('$meta')
    assert(meta)
    const operation = { kind: 'operation', name: '$meta', params: [] } as const
    for (const [operations, expected] of [
      [undefined, false],
      [[meta], true],
    ] as const) {
      const guard = make({ contexts: ['system'], operations })
      const caller = await guard.authenticate(auth.bearer({ scope: 'system/*.rs' }))
      assert(caller.allowed)
      assert.equal(caller.decide(operation).allowed, expected)
    }
  })

  it('enforces only patient/ scopes by default, except for the portal (SCOPE-8)', async () => {
    const search = { kind: 'search-type', type: 'Patient', params: [] } as const
    const claims = { scope: 'user/Patient.rs', fhirUser: 'Practitioner/1', patient: undefined }
    const app = await interceptor.authenticate(auth.bearer(claims))
    assert(app.allowed)
    const refused = app.decide(search)
    assert(!refused.allowed)
    assert.match(
      String(refused.outcome.issue[0]?.diagnostics),
      /\. This server accepts no user\/ scopes\. No scope would permit/,
    )
    const portal = await interceptor.authenticate(auth.bearer({ ...claims, client_id: 'sallyport-portal' }))
    assert(portal.allowed && portal.decide(search).allowed)
    const caller = await make({ contexts: ['patient', 'user'] }).authenticate(auth.bearer(claims))
    assert(caller.allowed && caller.decide(search).allowed)
  })
})
