import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { describe, it } from 'node:test'
import { createInterceptor } from '../interceptor.ts'
import { authUrl, fhirBaseUrl, TestIssuer } from '../testing/test-issuer.ts'
import { createRevocations } from './revocations.ts'

const mark = (id: string) => hash('sha256', id, 'base64url').slice(0, 22)

function stand() {
  const auth = new TestIssuer()
  const guard = createInterceptor({ authUrl, fhirBaseUrl, fetch: auth.fetch, clock: auth.clock })
  const status = async (jti: string) => {
    const answer = await guard.authenticate(auth.bearer({ jti }))
    return answer.allowed ? 200 : answer.status
  }
  return { auth, guard, status }
}

describe('revocations', () => {
  it('refuses a token by its own id and by its grant id, and no other', async () => {
    const { auth, guard, status } = stand()
    await guard.start()
    assert.equal(await status('grant-1.a'), 200)
    auth.feed = () => ({ revoked: [mark('grant-1'), mark('grant-2.b')], lifetime: 360, next: auth.now })
    auth.now += 2_000
    await guard.start()
    guard.close()
    assert.equal(await status('grant-1.a'), 401)
    assert.equal(await status('grant-1.z'), 401)
    assert.equal(await status('grant-2.b'), 401)
    assert.equal(await status('grant-2.a'), 200)
    assert.equal(await status('grant-11.a'), 200)
  })

  it('fetches only new revocations, every two seconds, and not on requests (BEARER-10)', async () => {
    const { auth, guard, status } = stand()
    const requested: (string | null)[] = []
    auth.feed = since => {
      requested.push(since)
      return { revoked: [], lifetime: 360, next: 4711 }
    }
    await guard.start()
    for (let i = 0; i < 20; i++) await status(`j-${i}`)
    await guard.start()
    assert.deepEqual(requested, ['0'])
    auth.now += 1_500
    await guard.start()
    guard.close()
    assert.deepEqual(requested, ['0', '4711'])
  })

  it('keeps revocations while the auth server is unreachable, until the tokens have expired (BEARER-10)', async () => {
    const { auth, guard, status } = stand()
    auth.feed = () => ({ revoked: [mark('g')], lifetime: 360, next: 1 })
    await guard.start()
    auth.away = true
    auth.now += 2_000
    await guard.start()
    assert.equal(await status('g.1'), 401)
    auth.away = false
    auth.feed = () => ({ revoked: [], lifetime: 360, next: 1 })
    auth.now += 361_000
    await guard.start()
    guard.close()
    assert.equal(await status('g.1'), 200)
  })

  it('adds new revocations to the known ones, and drops them when the tokens have expired', async () => {
    const { auth, guard, status } = stand()
    const revoking = async (ms: number, ...ids: string[]) => {
      auth.feed = () => ({ revoked: ids.map(mark), lifetime: 2, next: 1 })
      auth.now += ms
      await guard.start()
    }
    await revoking(0, 'g')
    await revoking(1_500, 'h')
    assert.deepEqual([await status('g.1'), await status('h.1'), await status('i.1')], [401, 401, 200])
    await revoking(1_501)
    assert.deepEqual([await status('g.1'), await status('h.1')], [200, 401])
    guard.close()
  })

  it('drops a revocation to the millisecond', async () => {
    for (const [passed, expected] of [
      [2_000, 401],
      [2_001, 200],
    ] as const) {
      const { auth, guard, status } = stand()
      auth.feed = () => ({ revoked: [mark('g')], lifetime: 2, next: 1 })
      await guard.start()
      auth.feed = () => ({ revoked: [], lifetime: 2, next: 1 })
      auth.now += passed
      await guard.start()
      guard.close()
      assert.equal(await status('g.1'), expected)
    }
  })

  it('does not follow redirects', async () => {
    const inits: (RequestInit | undefined)[] = []
    const list = createRevocations({
      url: `${authUrl}/oauth2/revocations`,
      fetch: async (_url, init) => {
        inits.push(init)
        return Response.json({ revoked: [], lifetime: 1, next: 1 })
      },
      clock: () => 0,
    })
    await list.keepFresh()
    assert.deepEqual(
      inits.map(it => [it?.redirect, it?.headers]),
      [['error', { accept: 'application/json' }]],
    )
  })

  it('works without a list, and ignores malformed ones', async () => {
    const { auth, guard, status } = stand()
    for (const answer of [
      null,
      [],
      { revoked: 'all' },
      { revoked: [1], lifetime: 1, next: 1 },
      { revoked: [mark('g')], lifetime: '1', next: 1 },
      { revoked: [mark('g')], lifetime: 1, next: '1' },
    ]) {
      auth.feed = () => answer
      auth.now += 2_000
      await guard.start()
      assert.equal(await status('g.1'), 200)
    }
    guard.close()
  })
})
