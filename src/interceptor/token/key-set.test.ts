import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createInterceptor } from '../interceptor.ts'
import { authUrl, fhirBaseUrl, makeKey, TestIssuer } from '../testing/test-issuer.ts'
import { createKeySet } from './key-set.ts'

function stand() {
  const auth = new TestIssuer()
  const guard = createInterceptor({ authUrl, fhirBaseUrl, fetch: auth.fetch, clock: auth.clock })
  const status = async (authorization = auth.bearer()) => {
    const answer = await guard.authenticate(authorization)
    return answer.allowed ? 200 : answer.status
  }
  return { auth, guard, status }
}

describe('createKeySet', () => {
  it('fetches the key set once for many tokens (BEARER-7)', async () => {
    const { auth, status } = stand()
    const tokens = ['a', 'b', 'c', 'd'].map(jti => auth.bearer({ jti }))
    assert.deepEqual(await Promise.all(tokens.map(status)), [200, 200, 200, 200])
    assert.equal(auth.requests, 1)
  })

  it('fetches the key set again on an unknown kid, so that a rotation takes effect at once (BEARER-8)', async () => {
    const { auth, status } = stand()
    assert.equal(await status(), 200)
    auth.now += 5_000
    auth.keys.push(makeKey())
    assert.equal(await status(), 200)
    assert.equal(auth.requests, 2)
  })

  it('limits how often unknown kids cause a fetch (BEARER-8)', async () => {
    const { auth, status } = stand()
    assert.equal(await status(), 200)
    for (let i = 0; i < 50; i++) assert.equal(await status(auth.bearer({}, { kid: `made-up-${i}` })), 401)
    assert.equal(auth.requests, 1)
    auth.now += 5_000
    for (let i = 0; i < 50; i++) assert.equal(await status(auth.bearer({}, { kid: `made-up-${i}` })), 401)
    assert.equal(auth.requests, 2)
  })

  it('reports why a set is unusable or cannot be fetched, once until the reason changes', async () => {
    const reasons: string[] = []
    let answer = () => new Response('no', { status: 404 })
    let now = 0
    const keys = createKeySet({
      url: `${authUrl}/jwks`,
      algorithms: ['RS256'],
      fetch: async () => answer(),
      clock: () => now,
      onRemoval: () => {},
      onUnusable: reason => {
        reasons.push(reason)
        throw new Error('of the listener')
      },
    })
    const seek = async () => {
      now += 60_000
      return keys.find('kid', 'RS256')
    }
    const small = { kty: 'EC', kid: 'kid', crv: 'P-256', x: 'x', y: 'y' }
    for (const [at, next] of [
      () => new Response('no', { status: 404 }),
      () => new Response('<html>'),
      () => Response.json({ keys: [small] }),
      () => {
        throw new TypeError('fetch failed', { cause: new Error('connect ECONNREFUSED 127.0.0.1:9') })
      },
    ].entries()) {
      answer = next
      for (const _attempt of [1, 2]) assert.deepEqual([await seek(), reasons.length], ['unavailable', at + 1])
    }
    assert.deepEqual(reasons, [
      'the response status is 404',
      'the response is not JSON',
      'it has no key with a kid for RS256 (RSA keys: at least 2048 bits)',
      'it cannot be fetched: fetch failed: connect ECONNREFUSED 127.0.0.1:9',
    ])
  })

  it('keeps the keys while the auth server is unreachable (BEARER-9)', async () => {
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

  it('refreshes the auth server’s keys every two seconds, and verifies tokens of a withdrawn key again (BEARER-8)', async () => {
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

  it('reports every withdrawn or replaced key, and nothing else', async () => {
    const [first, second, third] = [makeKey(), makeKey(), makeKey()]
    const { auth } = stand()
    let removals = 0
    const inits: (RequestInit | undefined)[] = []
    const keys = createKeySet({
      url: `${authUrl}/oauth2/jwks`,
      algorithms: ['RS256'],
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
      // Another key under the same `kid`.
      [[{ ...second, kid: first.kid }], 3],
    ] as const) {
      auth.keys = [...set]
      auth.now += 5_000
      await keys.keepFresh()
      assert.equal(removals, expected)
    }
    // A redirect could lead to the keys of an attacker.
    assert.deepEqual([...new Set(inits.map(it => it?.redirect))], ['error'])
    assert.deepEqual(inits[0]?.headers, { accept: 'application/json' })
  })

  it('refreshes a key set every five minutes by default', async () => {
    const { auth } = stand()
    const url = `${authUrl}/oauth2/jwks`
    const keys = createKeySet({
      url,
      algorithms: ['RS256'],
      fetch: auth.fetch,
      clock: auth.clock,
      onRemoval: () => {},
    })
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

  it('is not ready, and responds with 503, until a set has been fetched (BEARER-9)', async () => {
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

  it('keeps its keys when the auth server responds with something else', async () => {
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
