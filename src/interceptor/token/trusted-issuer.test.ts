import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { describe, it } from 'node:test'
import { decodeJwt, signJwt } from '../../jwt/index.ts'
import { createInterceptor, type InterceptorOptions, type TrustedIssuer } from '../index.ts'
import { authUrl, fhirBaseUrl, makeKey, TestIssuer } from '../testing/test-issuer.ts'

const idp = 'https://idp.test/realms/hospital'
const jwksUrl = `${idp}/keys`

/** Creates our auth server and another issuer with its own keys at its own URL. */
function createIssuers(trusted: Partial<TrustedIssuer> = {}, more: Partial<InterceptorOptions> = {}) {
  const auth = new TestIssuer()
  const theirs = { keys: [makeKey()], unreachable: false, requests: 0 }
  const guard = createInterceptor({
    authUrl,
    fhirBaseUrl,
    contexts: ['patient'],
    trustedIssuers: [
      { issuer: idp, jwksUrl, ...trusted },
      // It has the name of our auth server, so its keys are never fetched.
      { issuer: authUrl, jwksUrl: 'https://evil.test/keys' },
    ],
    clock: auth.clock,
    ...more,
    fetch: async url => {
      if (url !== jwksUrl) return auth.fetch(url)
      theirs.requests += 1
      if (theirs.unreachable) throw new TypeError('fetch failed')
      return Response.json({
        keys: theirs.keys.map(({ kid, publicKey }) => ({ ...publicKey.export({ format: 'jwk' }), kid })),
      })
    },
  })
  const bearer = (claims: object = {}, header: object = {}) =>
    `Bearer ${auth.token({ iss: idp, ...claims }, { ...header }, theirs.keys.at(-1))}`
  const status = async (authorization: string) => {
    const answer = await guard.authenticate(authorization)
    return answer.allowed ? 200 : answer.status
  }
  const grant = async (authorization: string) => {
    const answer = await guard.authenticate(authorization)
    return answer.allowed ? answer.grant : undefined
  }
  return { auth, theirs, guard, bearer, status, grant }
}

describe('a trusted issuer', () => {
  it('may grant up to 150 granular scopes; the response to a token with more names the limit (GRANULAR-4)', async () => {
    const { bearer, guard } = createIssuers()
    const granular = (count: number) => Array.from({ length: count }, (_, at) => `patient/A.r?code=${at}`)
    assert.equal(
      (await guard.authenticate(bearer({ scope: [...granular(150), 'patient/*.rs', 'openid'] }))).allowed,
      true,
    )
    const refused = await guard.authenticate(bearer({ scope: granular(151) }))
    assert.ok(!refused.allowed && refused.status === 401)
    assert.match(JSON.stringify(refused.outcome), /has more than 150 granular scopes/)
    const combined = (count: number) =>
      Array.from({ length: count }, (_, at) => `patient/A.r?code=${at}&status=${at}`)
    assert.equal((await guard.authenticate(bearer({ scope: combined(25) }))).allowed, true)
    const tooMany = await guard.authenticate(bearer({ scope: combined(26) }))
    assert.ok(!tooMany.allowed && tooMany.status === 401)
    assert.match(JSON.stringify(tooMany.outcome), /more than 50 search parameters in scopes that combine/)
    const long = await guard.authenticate(`Bearer ${'a'.repeat(12_289)}`)
    assert.match(JSON.stringify(!long.allowed && long.outcome), /is longer than 12288 characters/)
  })

  it('is accepted in addition to our auth server, each with its own keys (BEARER-13)', async () => {
    const { auth, theirs, status, bearer } = createIssuers()
    assert.equal(await status(bearer()), 200)
    assert.equal(await status(auth.bearer()), 200)
    const key = theirs.keys[0]
    assert.equal(await status(`Bearer ${auth.token({}, {}, key)}`), 401, 'its key signs nothing of ours')
    assert.equal(await status(`Bearer ${auth.token({ iss: idp })}`), 401, 'our key signs nothing of its own')
    assert.equal(await status(bearer({ iss: `${idp}/` })), 401)
    assert.equal(await status(bearer({ iss: 'https://other.test' })), 401)
  })

  it('has its own audience and type (BEARER-13)', async () => {
    const { bearer, status } = createIssuers({
      audiences: ['api://fhir', `${fhirBaseUrl}/`],
      types: ['JWT', 'at+jwt'],
    })
    for (const [claims, header, expected] of [
      [{ aud: 'api://fhir' }, { typ: 'JWT' }, 200],
      [{ aud: ['x', 'api://fhir'] }, { typ: 'jwt' }, 200],
      [{}, {}, 200],
      [{ aud: 'other' }, {}, 401],
      [{}, { typ: 'id' }, 401],
      [{}, { typ: undefined }, 401],
      [{}, { alg: 'none' }, 401],
      [{ exp: 1 }, {}, 401],
    ] as const)
      assert.equal(await status(bearer(claims, header)), expected, JSON.stringify([claims, header]))
    const strict = createIssuers()
    assert.equal(await strict.status(strict.bearer({}, { typ: 'JWT' })), 401)
    assert.equal(await strict.status(strict.bearer({ aud: 'api://fhir' })), 401)
  })

  it('may sign with RS256, RS384, PS256, ES256 and ES384; our auth server with RS256 only (BEARER-13)', async () => {
    const { auth, theirs, status } = createIssuers()
    const rsa = makeKey()
    const p256 = { kid: 'p256', ...generateKeyPairSync('ec', { namedCurve: 'P-256' }) }
    const p384 = { kid: 'p384', ...generateKeyPairSync('ec', { namedCurve: 'P-384' }) }
    theirs.keys = [rsa, p256, p384]
    auth.keys = [rsa, p256, p384]
    for (const [alg, { kid, privateKey }, expected] of [
      ['RS256', rsa, [200, 200]],
      ['RS384', rsa, [200, 401]],
      ['PS256', rsa, [200, 401]],
      ['ES256', p256, [200, 401]],
      ['ES384', p384, [200, 401]],
    ] as const) {
      const sign = async (iss: string) => {
        const claims = decodeJwt(auth.token({ iss }, {}, rsa))?.claims ?? {}
        return `Bearer ${await signJwt({ alg, typ: 'at+jwt', kid }, claims, privateKey)}`
      }
      assert.deepEqual([await status(await sign(idp)), await status(await sign(authUrl))], expected, alg)
    }
    assert.deepEqual([theirs.requests, auth.requests], [1, 1])
  })

  it('may use its own claim names for patient, user and scope', async () => {
    const { bearer, grant } = createIssuers({
      patientClaim: 'smart.patient',
      fhirUserClaim: 'https://idp.test/fhirUser',
      scopeClaim: 'scp',
    })
    const found = await grant(
      bearer({
        patient: 'other',
        scope: 'patient/*.cruds',
        smart: { patient: 'Patient/7' },
        'https://idp.test/fhirUser': 'Practitioner/p',
        scp: ['patient/Condition.rs'],
      }),
    )
    assert.equal(found?.patient, '7')
    assert.deepEqual(found?.fhirUser, { type: 'Practitioner', id: 'p' })
    assert.deepEqual(
      found?.scopes.map(it => it.text),
      ['patient/Condition.rs'],
    )
    assert.equal(found?.issuer, idp)
    assert.equal((await grant(bearer({ smart: 'x' })))?.patient, undefined)
    assert.equal((await grant(bearer({ smart: { patient: 'Patient/a/b' } })))?.patient, undefined)
  })

  it('cannot issue tokens of our portal (BEARER-13)', async () => {
    const { auth, guard, bearer } = createIssuers()
    const claims = { client_id: 'sallyport-portal', scope: 'user/Patient.rs', fhirUser: 'Practitioner/p' }
    const search = { kind: 'search-type', type: 'Patient', params: [] } as const
    const portal = await guard.authenticate(auth.bearer(claims))
    const other = await guard.authenticate(bearer(claims))
    assert(portal.allowed && other.allowed)
    assert.equal(portal.decide(search).allowed, true)
    assert.equal(other.decide(search).allowed, false)
  })

  it('cannot replace our auth server', async () => {
    const { auth, theirs, status } = createIssuers({ issuer: authUrl })
    assert.equal(await status(auth.bearer()), 200)
    assert.equal(await status(`Bearer ${auth.token({}, {}, theirs.keys[0])}`), 401)
  })

  it('may rotate its keys and be unreachable', async () => {
    const { auth, theirs, bearer, status, guard } = createIssuers()
    assert.equal(await status(bearer()), 200)
    theirs.keys.push(makeKey())
    auth.now += 5_000
    assert.equal(await status(bearer({ jti: 'new' })), 200)
    theirs.unreachable = true
    auth.now += 3_600_000
    assert.equal(await status(bearer({ jti: 'unreachable', exp: auth.now / 1000 + 60 })), 200)
    assert(guard.ready())
  })

  it('makes the interceptor ready by its keys alone', async () => {
    const { auth, guard, bearer, status } = createIssuers()
    auth.away = true
    await guard.start()
    guard.close()
    assert(guard.ready())
    assert.equal(await status(bearer()), 200)
    assert.equal(await status(auth.bearer()), 503)
  })

  it('may be the only one (BEARER-13)', async () => {
    const { auth, guard, bearer, status } = createIssuers(
      {},
      { authUrl: undefined, trustedIssuers: [{ issuer: idp, jwksUrl }] },
    )
    await guard.start()
    guard.close()
    assert.deepEqual([await status(bearer()), await status(auth.bearer())], [200, 401])
    // Our auth server is not asked for anything.
    assert.equal(auth.requests, 0)
    assert.throws(() => createInterceptor({ fhirBaseUrl }), /^TypeError: Option authUrl/)
  })
})
