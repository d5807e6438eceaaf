import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { describe, it } from 'node:test'
import { createInterceptor } from '../interceptor.ts'
import { authUrl, fhirBaseUrl, makeKey, StandingAuthServer } from '../testing/auth-server.ts'
import { keySet } from './key-set.ts'
import { readKeys } from './read-keys.ts'

function stand() {
  const auth = new StandingAuthServer()
  const guard = createInterceptor({ authUrl, fhirBaseUrl, fetch: auth.fetch, clock: auth.clock })
  const status = async (authorization = auth.bearer()) => {
    const answer = await guard.authenticate(authorization)
    return answer.allowed ? 200 : answer.status
  }
  return { auth, guard, status }
}

describe('keySet', () => {
  it('fetches the key set once for many tokens', async () => {
    const { auth, status } = stand()
    const tokens = ['a', 'b', 'c', 'd'].map(jti => auth.bearer({ jti }))
    assert.deepEqual(await Promise.all(tokens.map(status)), [200, 200, 200, 200])
    assert.equal(auth.requests, 1)
  })

  it('fetches it again on an unknown kid: a rotation is noticed at once', async () => {
    const { auth, status } = stand()
    assert.equal(await status(), 200)
    auth.now += 5_000
    auth.keys.push(makeKey())
    assert.equal(await status(), 200)
    assert.equal(auth.requests, 2)
  })

  it('does not let unknown kids set the pace', async () => {
    const { auth, status } = stand()
    assert.equal(await status(), 200)
    for (let i = 0; i < 50; i++) assert.equal(await status(auth.bearer({}, { kid: `made-up-${i}` })), 401)
    assert.equal(auth.requests, 1)
    auth.now += 5_000
    for (let i = 0; i < 50; i++) assert.equal(await status(auth.bearer({}, { kid: `made-up-${i}` })), 401)
    assert.equal(auth.requests, 2)
  })

  it('says why a set cannot be used, once until that changes', async () => {
    const told: string[] = []
    let answer = () => new Response('no', { status: 404 })
    let now = 0
    const keys = keySet({
      ...{ url: `${authUrl}/jwks`, fetch: async () => answer(), clock: () => now, onRemoval: () => {} },
      onUnusable: reason => told.push(reason),
    })
    const seek = async () => {
      now += 60_000
      return keys.find('kid')
    }
    const small = { kty: 'EC', kid: 'kid', crv: 'P-256', x: 'x', y: 'y' }
    for (const next of [
      () => new Response('no', { status: 404 }),
      () => new Response('<html>'),
      () => Response.json({ keys: [small] }),
    ]) {
      answer = next
      assert.equal(await seek(), 'unavailable')
      assert.equal(await seek(), 'unavailable')
    }
    assert.deepEqual(told, [
      'it was answered with 404',
      'it is not JSON',
      'it has no RSA key of at least 2048 bits for RS256 with a kid',
    ])
  })

  it('is still used while the auth server is away', async () => {
    const { auth, guard, status } = stand()
    await guard.start()
    auth.away = true
    auth.now += 3_600_000
    await guard.start()
    guard.close()
    assert.equal(await status(), 200)
    assert.equal(await status(auth.bearer({}, { kid: 'new' })), 401)
    assert(guard.ready())
  })

  it('is refreshed every two seconds, and what a withdrawn key signed is verified anew', async () => {
    const { auth, guard, status } = stand()
    await guard.start()
    const old = auth.bearer({ exp: auth.now / 1000 + 900 })
    assert.equal(await status(old), 200)
    auth.keys = [makeKey()]
    auth.now += 1_499
    await guard.start()
    assert.equal(auth.requests, 1)
    auth.now += 1
    await guard.start()
    guard.close()
    assert.equal(auth.requests, 2)
    assert.equal(await status(), 200)
    assert.equal(await status(old), 401)
  })

  it('has what was verified forgotten when any key is withdrawn, and only then', async () => {
    const [first, second, third] = [makeKey(), makeKey(), makeKey()]
    const { auth } = stand()
    let removals = 0
    const inits: (RequestInit | undefined)[] = []
    const keys = keySet({
      url: `${authUrl}/oauth2/jwks`,
      fetch: (url, init) => {
        inits.push(init)
        return auth.fetch(url)
      },
      clock: auth.clock,
      onRemoval: () => {
        removals += 1
      },
      refreshMs: 1000,
    })
    for (const [set, expected] of [
      [[first, second], 0],
      [[first, second], 0],
      [[first, second, third], 0],
      [[second, third], 1],
      [[first], 2],
    ] as const) {
      auth.keys = [...set]
      auth.now += 5_000
      await keys.keepFresh()
      assert.equal(removals, expected)
    }
    // Whoever could send it elsewhere could bring keys of their own.
    assert.deepEqual([...new Set(inits.map(it => it?.redirect))], ['error'])
    assert.deepEqual(inits[0]?.headers, { accept: 'application/json' })
  })

  it('is refreshed every five minutes where nobody says otherwise', async () => {
    const { auth } = stand()
    const url = `${authUrl}/oauth2/jwks`
    const keys = keySet({ url, fetch: auth.fetch, clock: auth.clock, onRemoval: () => {} })
    for (const [passed, requests] of [
      [0, 1],
      [299_999, 1],
      [1, 2],
    ] as const) {
      auth.now += passed
      await keys.keepFresh()
      assert.equal(auth.requests, requests)
    }
  })

  it('is not ready, and answers 503, until a set was fetched', async () => {
    const { auth, guard, status } = stand()
    auth.away = true
    await guard.start()
    assert.equal(guard.ready(), false)
    assert.equal(await status(), 503)
    assert.equal(await status('Bearer junk'), 401)
    auth.away = false
    auth.now += 500
    assert.equal(await status(), 200)
    assert.equal(guard.ready(), true)
    guard.close()
  })

  it('keeps its keys when the auth server answers with something else', async () => {
    const { auth, guard, status } = stand()
    await guard.start()
    const before = auth.keys
    const old = auth.bearer({ exp: auth.now / 1000 + 900 })
    auth.keys = []
    auth.now += 300_000
    await guard.start()
    guard.close()
    assert.equal(await status(old), 200)
    assert.equal(before.length, 1)
    auth.keys = [makeKey()]
    assert(guard.ready())
    auth.now += 5_000
    assert.equal(await status(), 200)
  })
})

describe('readKeys', () => {
  const jwk = {
    ...generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey.export({ format: 'jwk' }),
    kid: 'a',
  }
  const small = {
    ...generateKeyPairSync('rsa', { modulusLength: 1024 }).publicKey.export({ format: 'jwk' }),
    kid: 'b',
  }
  const curve = {
    ...generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ format: 'jwk' }),
    kid: 'c',
  }

  it('takes RSA keys for RS256 signatures', () => {
    assert.deepEqual(
      [...readKeys({ keys: [jwk, { ...jwk, kid: 'd', use: 'sig', alg: 'RS256' }] }).keys()],
      ['a', 'd'],
    )
  })

  it('passes over all else', () => {
    const others = [
      small,
      curve,
      { ...jwk, use: 'enc' },
      { ...jwk, alg: 'PS256' },
      { ...jwk, kid: 1 },
      { ...jwk, n: '' },
    ]
    assert.equal(readKeys({ keys: [...others, null, 'x'] }).size, 0)
    for (const document of [undefined, null, [], 'x', {}, { keys: {} }])
      assert.equal(readKeys(document).size, 0)
  })
})
