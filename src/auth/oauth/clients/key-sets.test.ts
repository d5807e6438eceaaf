import assert from 'node:assert/strict'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { isFailure } from '../../../core/index.ts'
import { createLogger } from '../../../web/http/index.ts'
import { LIMITS } from '../../base/limits.ts'
import { SigningClient } from '../../testing/signing-client.ts'
import { TestAuthServer } from '../../testing/test-auth-server.ts'
import { openTestStore } from '../../testing/test-store.ts'
import { createKeySets } from './key-sets.ts'

describe('a key set by URL', () => {
  const open = openTestStore()
  let auth: TestAuthServer
  let client: SigningClient
  let server: Server
  let url: string
  const log: string[] = []
  let served: { keys: unknown; cacheControl: string; status: number; requests: number }
  before(async () => {
    const logger = createLogger({ level: 'warn', destination: { write: line => log.push(line) } })
    auth = await TestAuthServer.open(await open(), { logger })
    client = new SigningClient('by-url', auth.time)
    served = { keys: [client.jwk], cacheControl: 'max-age=60', status: 200, requests: 0 }
    server = createServer((_request, response) => {
      served.requests += 1
      response.writeHead(served.status, { 'cache-control': served.cacheControl })
      response.end(JSON.stringify({ keys: served.keys }))
    })
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/jwks`
    await auth.addClient({
      client_id: 'by-url',
      auth_method: 'private_key_jwt',
      jwks_url: url,
      scope: 'system/*.rs',
    })
  })
  after(async () => {
    await auth.app.close()
    server.close()
  })

  const ask = async (header: Record<string, unknown> = {}) => {
    const form = { grant_type: 'client_credentials', scope: 'system/*.rs', ...client.makeProof({}, header) }
    return (await auth.requestToken(form)).statusCode
  }
  const requestsOf = async (act: () => Promise<unknown>) => {
    const earlier = served.requests
    await act()
    return served.requests - earlier
  }

  it('is fetched once while it is fresh, even for concurrent requests, and again afterwards', async () => {
    assert.equal(
      await requestsOf(async () => {
        const statuses = await Promise.all(Array.from({ length: 10 }, () => ask()))
        assert.deepEqual(new Set(statuses), new Set([200]))
      }),
      1,
    )
    auth.time.now += 59_000
    assert.equal(await requestsOf(() => ask()), 0)
    auth.time.now += 1_000
    assert.equal(await requestsOf(() => ask()), 1)
  })

  it('is fetched at most once in five seconds even if it may not be cached (CLIENT-8)', async () => {
    auth.time.now += 60_000
    served.cacheControl = 'no-store'
    const strangers = async () => {
      for (let i = 0; i < 20; i++) {
        const forged = {
          ...client.makeProof(),
          client_assertion: `${client.signAssertion().slice(0, -8)}AAAAAAAA`,
        }
        const answer = await auth.requestToken({
          grant_type: 'client_credentials',
          scope: 'system/*.rs',
          ...forged,
        })
        assert.equal(answer.statusCode, 401)
      }
    }
    assert.equal(await requestsOf(strangers), 1)
    assert.equal(await requestsOf(() => ask()), 0)
    auth.time.now += 5_000
    assert.equal(await requestsOf(strangers), 1)
    served.cacheControl = 'max-age=60'
    auth.time.now += 5_000
    await ask()
  })

  it('is not fetched again at once after a failure', async () => {
    auth.time.now += 60_000
    served.status = 500
    const failing = async () => {
      for (let i = 0; i < 5; i++) assert.equal(await ask(), 401)
    }
    assert.equal(await requestsOf(failing), 1)
    served.status = 200
    auth.time.now += 5_000
    assert.equal(await requestsOf(async () => assert.equal(await ask(), 200)), 1)
  })

  it('is fetched again for a new kid, at a limited rate', async () => {
    auth.time.now += 6_000
    served.keys = [client.jwk, { ...client.jwk, kid: 'key-2' }]
    assert.equal(await requestsOf(async () => assert.equal(await ask({ kid: 'key-2' }), 200)), 1)
    const strangers = async () => {
      for (let i = 0; i < 5; i++) assert.equal(await ask({ kid: `made-up-${i}` }), 401)
    }
    assert.equal(await requestsOf(strangers), 0)
    auth.time.now += 5_000
    assert.equal(await requestsOf(strangers), 1)
  })

  it('is not used if it is stale and cannot be fetched', async () => {
    served.status = 500
    assert.equal(await ask(), 200)
    auth.time.now += 60_000
    assert.equal(await ask(), 401)
    served.status = 200
    auth.time.now += 5_000
    assert.equal(await ask(), 200)
  })

  it('causes a log line with the reason if it cannot be used', async () => {
    for (const [keys, reason] of [
      ['none', 'no JSON object with an array keys'],
      [[{ ...client.jwk, kid: undefined }], 'no key for RS384 or ES384 with a kid'],
    ] as const) {
      auth.time.now += 60_000
      served.keys = keys
      log.length = 0
      assert.equal(await ask(), 401)
      const { msg, url: named, reason: loggedReason } = JSON.parse(log[0] ?? '{}')
      assert.deepEqual([msg, named, loggedReason], ['Cannot use the key set of a client', url, reason])
    }
    served.keys = [client.jwk]
    auth.time.now += 60_000
    assert.equal(await ask(), 200)
  })

  it('accepts a jku only if it equals the registered URL, and fetches no other', async () => {
    assert.equal(await ask({ jku: url }), 200)
    const port = new URL(url).port
    assert.equal(
      await requestsOf(async () => {
        for (const jku of [`${url}?x`, `http://127.0.0.1:${port}/evil`, 'https://evil.example/jwks', 7])
          assert.equal(await ask({ jku }), 401)
      }),
      0,
    )
  })

  it('can be fetched however many slow key sets unverified clients have registered', async () => {
    const { promise: never } = Promise.withResolvers<undefined>()
    const asked: string[] = []
    const fetchDocument = (address: string) => {
      asked.push(address)
      return address.includes('slow')
        ? never
        : Promise.resolve({ json: { keys: [client.jwk] }, freshForMs: 0 })
    }
    const keySets = createKeySets({ fetchDocument, clock: () => auth.time.now })
    const find = (name: string, approved: boolean) =>
      keySets.find({ jwksUrl: `https://${name}.example/jwks`, approved }, client.kid)
    for (let at = 0; at < LIMITS.keySetFetches; at++) void find(`slow-${at}`, false)
    assert.equal(asked.length, LIMITS.keySetFetchesOfStrangers)
    assert.ok(isFailure(await find('another', false)))
    assert.ok(Array.isArray(await find('approved', true)))
    for (let at = 0; at < LIMITS.keySetFetches; at++) void find(`slow-approved-${at}`, true)
    assert.equal(asked.length, LIMITS.keySetFetches + 1)
  })

  it('refuses one more unverified client with the limit of concurrent fetches, while another client gets its token', async () => {
    const slow = createServer()
    await new Promise<void>(resolve => slow.listen(0, '127.0.0.1', resolve))
    const address = `http://127.0.0.1:${(slow.address() as AddressInfo).port}`
    const { promise: allFetch, resolve: fetched } = Promise.withResolvers<void>()
    let fetches = 0
    slow.on('request', () => {
      fetches += 1
      if (fetches === LIMITS.keySetFetchesOfStrangers) fetched()
    })
    const askAs = async (at: number) => {
      const stranger = new SigningClient(`stranger-${at}`, auth.time)
      await auth.addClient({
        client_id: `stranger-${at}`,
        auth_method: 'private_key_jwt',
        approved: false,
        jwks_url: `${address}/${at}`,
        scope: 'system/*.rs',
      })
      const form = { grant_type: 'client_credentials', scope: 'system/*.rs', ...stranger.makeProof() }
      return auth.requestToken(form)
    }
    const waiting = Array.from({ length: LIMITS.keySetFetchesOfStrangers }, (_, at) => askAs(at))
    await allFetch
    const refused = await askAs(LIMITS.keySetFetchesOfStrangers)
    assert.deepEqual([refused.statusCode, refused.json().error], [401, 'invalid_client'])
    assert.match(refused.json().error_description, /already fetching 16 key sets/)
    assert.equal(await ask(), 200)
    slow.closeAllConnections()
    slow.close()
    await Promise.all(waiting)
  })

  it('is not fetched from a private address off loopback', async () => {
    const deployed = await TestAuthServer.open(await open(), { settings: { onLoopback: false } })
    await deployed.addClient({
      client_id: 'by-url',
      auth_method: 'private_key_jwt',
      jwks_url: url,
      scope: 'system/*.rs',
    })
    const form = () => ({ grant_type: 'client_credentials', scope: 'system/*.rs', ...client.makeProof() })
    const time = auth.time.now
    auth.time.now = deployed.time.now
    assert.equal(
      await requestsOf(async () => assert.equal((await deployed.requestToken(form())).statusCode, 401)),
      0,
    )
    const listed = await TestAuthServer.open(deployed.store, {
      settings: { onLoopback: false, privateJwksHosts: ['127.0.0.1'] },
    })
    assert.equal((await listed.requestToken(form())).statusCode, 200)
    auth.time.now = time
    await Promise.all([deployed.app.close(), listed.app.close()])
  })

  it('is fetched from the URL of the app server, but from no other port or path of its host (CLIENT-8)', async () => {
    const store = await open()
    const time = auth.time.now
    const request = async (appUrl: string, jwksUrl: string) => {
      const deployed = await TestAuthServer.open(store, { settings: { onLoopback: false, appUrl } })
      const row = { auth_method: 'private_key_jwt', jwks_url: jwksUrl, scope: 'system/*.rs' } as const
      await store.db.deleteFrom('client').where('client_id', '=', 'by-url').execute()
      await deployed.addClient({ client_id: 'by-url', ...row })
      auth.time.now = deployed.time.now
      const form = { grant_type: 'client_credentials', scope: 'system/*.rs', ...client.makeProof() }
      const { statusCode } = await deployed.requestToken(form)
      await deployed.app.close()
      return statusCode
    }
    const appUrl = new URL(url).origin
    const refused = async () => {
      assert.equal(await request('http://127.0.0.1:1', url), 401)
      for (const other of [
        `${appUrl}/`,
        `${appUrl}/jwks?x=1`,
        `${appUrl}/jwks/other`,
        `${appUrl}/other/../jwks2`,
      ])
        assert.equal(await request(appUrl, other), 401, other)
    }
    assert.equal(await requestsOf(refused), 0)
    assert.equal(await request(appUrl, url), 200)
    auth.time.now = time
  })
})
