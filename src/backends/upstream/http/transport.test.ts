import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { brotliDecompressSync, gunzipSync, gzipSync } from 'node:zlib'
import { fullAccess } from '../../../smart/index.ts'
import {
  condition,
  createAuthenticator,
  type Fhir,
  patient,
  patientAccess,
  readIssue,
} from '../../sqlite/testing/fhir.ts'
import type { GatewayOptions } from '../index.ts'
import { type HostileUpstream, json, searchset, startHostile } from '../testing/hostile-upstream.ts'
import { startGateway } from '../testing/start-gateway.ts'

const guard = createAuthenticator({ all: fullAccess, ann: patientAccess('ann') })

let upstream: HostileUpstream
before(async () => {
  upstream = await startHostile()
})
after(() => upstream.close())

async function withGateway(
  options: Partial<GatewayOptions>,
  work: (fhir: Fhir) => Promise<void>,
): Promise<void> {
  const fhir = await startGateway(upstream.url, { guard, ...options })
  try {
    await work(fhir)
  } finally {
    await fhir.close()
  }
}

describe('credentials for the upstream', () => {
  const sent = () => upstream.seen.at(-1)?.headers.authorization

  it('are none, a bearer token, or a username and password (GATEWAY-2)', async () => {
    upstream.answerJson(patient('ann'))
    const kinds: readonly [GatewayOptions['auth'], string | undefined][] = [
      [undefined, undefined],
      [{ kind: 'none' }, undefined],
      [{ kind: 'bearer', token: 'abc' }, 'Bearer abc'],
      [{ kind: 'basic', username: 'me', password: 'p:w' }, `Basic ${btoa('me:p:w')}`],
    ]
    for (const [auth, expected] of kinds)
      await withGateway(auth ? { auth } : {}, async fhir => {
        assert.equal((await fhir.as('ann')('GET Patient/ann')).status, 200)
        assert.equal(sent(), expected)
        assert.equal((await fhir.as('all')('GET Patient/ann')).status, 200)
        assert.equal(sent(), expected)
      })
  })

  it('are a token of the gateway, which it requests once and renews before expiry or after a 401 (GATEWAY-2)', async () => {
    let now = 0
    let issued = 0
    const asked: string[] = []
    const auth = {
      kind: 'client-credentials',
      tokenUrl: 'https://idp.test/token',
      clientId: 'gate way',
      clientSecret: 's:e',
      scope: 'system/*.rs',
    } as const
    const fetch: GatewayOptions['fetch'] = async (url, init) => {
      issued += 1
      asked.push(`${url} ${new Headers(init.headers).get('authorization')} ${init.body}`)
      return Response.json({ access_token: `t${issued}`, expires_in: 300 })
    }
    await withGateway({ auth, fetch, clock: () => now }, async fhir => {
      const ann = fhir.as('ann')
      upstream.answerJson(patient('ann'))
      await Promise.all([ann('GET Patient/ann'), ann('GET Patient/ann')])
      assert.deepEqual([sent(), issued], ['Bearer t1', 1])
      assert.deepEqual(asked, [
        `https://idp.test/token Basic ${btoa('gate%20way:s%3Ae')} grant_type=client_credentials&scope=system%2F*.rs`,
      ])
      now += 271_000
      await ann('GET Patient/ann')
      assert.deepEqual([sent(), issued], ['Bearer t2', 2])
      upstream.answer((request, response) =>
        request.headers.authorization === 'Bearer t3'
          ? json(response, patient('ann'))
          : json(response, {}, 401),
      )
      assert.equal((await ann('GET Patient/ann')).status, 200)
      assert.equal(issued, 3)
    })
  })

  it('cause a 503 without a reason if the gateway gets no token', async () => {
    const auth = {
      kind: 'client-credentials',
      tokenUrl: 'https://idp.test',
      clientId: 'a',
      clientSecret: 'b',
    } as const
    await withGateway({ auth, fetch: async () => new Response('no', { status: 400 }) }, async fhir => {
      const reply = await fhir.as('ann')('GET Patient/ann')
      assert.equal(reply.status, 503)
      assert.doesNotMatch(reply.text, /idp|token/)
    })
  })
})

describe('compression', () => {
  const many = searchset(Array.from({ length: 100 }, (_, at) => condition(`c${at}`, 'ann')))

  it('of the upstream is removed, whether the gateway checks the response or streams it', async () => {
    upstream.answer((_request, response) =>
      response
        .writeHead(200, { 'content-type': 'application/fhir+json', 'content-encoding': 'gzip' })
        .end(gzipSync(JSON.stringify(many))),
    )
    await withGateway({}, async fhir => {
      for (const reader of [fhir.as('ann'), fhir.as('all')])
        assert.equal((await reader('GET Condition?_count=100')).body.entry?.length, 100)
    })
  })

  it('follows the Accept-Encoding of the caller', async () => {
    upstream.answerJson(many)
    await withGateway({}, async fhir => {
      for (const token of ['ann', 'all'])
        for (const [accepted, unpack, encoding] of [
          ['gzip, deflate', gunzipSync, 'gzip'],
          ['gzip, br', brotliDecompressSync, 'br'],
          ['br;q=0, gzip', gunzipSync, 'gzip'],
        ] as const) {
          const headers = { authorization: `Bearer ${token}`, 'accept-encoding': accepted }
          const reply = await fhir.app.inject({ url: '/fhir/Condition?_count=100', headers })
          assert.equal(reply.headers['content-encoding'], encoding)
          assert.match(String(reply.headers.vary), /Accept-Encoding/)
          assert.equal(JSON.parse(String(unpack(reply.rawPayload))).entry.length, 100)
        }
    })
  })
})

describe('a compressed body', () => {
  it('is sent decompressed if it is within the limit', async () => {
    const { id: _, ...mine } = condition('x', 'ann')
    upstream.answer((_request, response) => json(response, condition('new', 'ann'), 201))
    await withGateway({ bodyLimit: 10_000 }, async fhir => {
      const post = (payload: Buffer) => {
        const headers = { 'content-type': 'application/fhir+json', 'content-encoding': 'gzip' }
        return fhir.app.inject({
          method: 'POST',
          url: '/fhir/Condition',
          payload: gzipSync(payload),
          headers: { ...headers, authorization: 'Bearer all' },
        })
      }
      assert.equal((await post(Buffer.from(JSON.stringify(mine)))).statusCode, 201)
      assert.equal(upstream.seen.at(-1)?.headers['content-encoding'], undefined)
      assert.deepEqual(JSON.parse(upstream.seen.at(-1)?.body ?? ''), mine)
      assert.equal((await post(Buffer.alloc(20_000, ' '))).statusCode, 413)
    })
  })
})

describe('a streamed response', () => {
  it('has no body if the compressed body is empty and has no content type (GATEWAY-28)', async () => {
    upstream.answer((_request, response) => {
      response.writeHead(201, {
        'content-encoding': 'gzip',
        location: `${upstream.url}/Condition/1/_history/1`,
      })
      response.write(gzipSync(''))
      response.end()
    })
    await withGateway({}, async fhir => {
      const made = await fhir.as('all')('POST Condition', condition('x', 'ann'), { prefer: 'return=minimal' })
      assert.deepEqual([made.status, made.text], [201, ''])
    })
  })

  it('may exceed the limit that applies to a checked response', async () => {
    upstream.answer((_request, response) => {
      response
        .writeHead(200, { 'content-type': 'application/fhir+json' })
        .write('{"resourceType":"Bundle","x":"')
      for (let at = 0; at < 50; at++) response.write('x'.repeat(10_000))
      response.end('"}')
    })
    await withGateway({ responseLimit: 100_000 }, async fhir => {
      const whole = await fhir.as('all')('GET Condition')
      assert.deepEqual([whole.status, whole.text.length], [200, 500_032])
      assert.doesNotMatch((await fhir.as('ann')('GET Condition')).text, /xxx/)
    })
  })

  it('is requested again if the connection closes before it starts', async () => {
    let asked = 0
    upstream.answer((_request, response) => {
      asked += 1
      if (asked < 3) response.destroy()
      else json(response, patient('ann'))
    })
    await withGateway({}, async fhir =>
      assert.deepEqual([(await fhir.as('all')('GET Patient/ann')).status, asked], [200, 3]),
    )
  })

  it('ends with an error if the upstream cuts it off', async () => {
    upstream.answer((_request, response) => {
      response.writeHead(200, { 'content-type': 'application/fhir+json' }).write('{"resourceType":"Bundle"')
      setTimeout(() => response.destroy(), 20)
    })
    const read = async (fhir: Fhir) => {
      const url = await fhir.app.listen({ port: 0, host: '127.0.0.1' })
      const reply = await fetch(`${url}/fhir/Condition`, { headers: { authorization: 'Bearer all' } })
      await reply.text()
      return reply.status
    }
    await withGateway({}, async fhir => assert.equal(await read(fhir), 503))
    const streamed = { responseLimit: 20 }
    await withGateway(streamed, fhir => assert.rejects(read(fhir)))
  })

  it('is no longer read from the upstream, and frees its connection, once the client has disconnected', async () => {
    const closed = Promise.withResolvers<void>()
    upstream.answer((_request, response) => {
      response.writeHead(200, { 'content-type': 'application/fhir+json' }).write('x'.repeat(1_000))
      response.on('close', closed.resolve)
    })
    await withGateway({ responseLimit: 20, connections: 1 }, async fhir => {
      const url = await fhir.app.listen({ port: 0, host: '127.0.0.1' })
      const request = { headers: { authorization: 'Bearer all' }, signal: AbortSignal.timeout(50) }
      await assert.rejects(fetch(`${url}/fhir/Condition`, request).then(reply => reply.text()))
      await closed.promise
      upstream.answerJson(patient('ann'))
      assert.equal((await fhir.as('all')('GET Patient/ann')).status, 200)
    })
  })
})

describe('HEAD, OPTIONS, CORS and conditional reads', () => {
  it('are answered as by the embedded server', async () => {
    upstream.answerJson(patient('ann'), 200, {
      etag: 'W/"7"',
      'last-modified': 'Sun, 01 Mar 2026 10:00:00 GMT',
    })
    await withGateway({}, async fhir => {
      for (const reader of [fhir.as('ann'), fhir.as('all')]) {
        const head = await reader('HEAD Patient/ann')
        assert.deepEqual([head.status, head.text, head.headers.etag], [200, '', 'W/"7"'])
        assert.equal(head.headers['last-modified'], 'Sun, 01 Mar 2026 10:00:00 GMT')
        const reply = await reader('GET Patient/ann', undefined, { origin: 'https://app.test' })
        assert.equal(reply.headers['access-control-allow-origin'], '*')
        assert.equal(reply.headers['content-type'], 'application/fhir+json; charset=utf-8')
      }
      assert.equal((await fhir('OPTIONS Patient/ann', undefined, { origin: 'https://app.test' })).status, 204)
      assert.equal((await fhir('GET Patient/ann')).status, 401)
      assert.equal(
        (await fhir.as('ann')('GET Patient/ann', undefined, { accept: 'application/fhir+xml' })).status,
        406,
      )
      // SMART 2.2: always JSON, whatever Accept says.
      const xml = { accept: 'application/fhir+xml' }
      const smart = await fhir('GET .well-known/smart-configuration', undefined, xml)
      assert.deepEqual(
        [smart.status, smart.headers['content-type']],
        [200, 'application/json; charset=utf-8'],
      )
    })
  })

  it('return 304 for the version that the caller has', async () => {
    upstream.answerJson(patient('ann'), 200, { etag: 'W/"7"' })
    await withGateway({}, async fhir => {
      const read = (tag: string) => fhir.as('ann')('GET Patient/ann', undefined, { 'if-none-match': tag })
      assert.equal((await read('W/"7"')).status, 304)
      assert.equal((await read('"7"')).status, 304)
      assert.equal((await read('W/"6"')).status, 200)
      assert.equal(upstream.seen.at(-1)?.headers['if-none-match'], undefined)
      upstream.answer((request, response) =>
        request.headers['if-none-match'] === 'W/"7"'
          ? response.writeHead(304).end()
          : json(response, patient('ann')),
      )
      const full = await fhir.as('all')('GET Patient/ann', undefined, { 'if-none-match': 'W/"7"' })
      assert.deepEqual([full.status, full.text], [304, ''])
    })
  })
})

describe('an upstream that stops and starts again', () => {
  it('gets no requests after some failures, makes /readyz fail, and is used again as soon as it answers (GATEWAY-12)', async () => {
    const stopping = await startHostile()
    stopping.answerJson(patient('ann'))
    let now = 0
    const fhir = await startGateway(stopping.url, { guard, clock: () => now, timeoutMs: 500 })
    const ann = fhir.as('ann')
    const ready = async () => {
      now += 1_000
      return (await fhir.app.inject({ url: '/readyz' })).statusCode
    }
    assert.deepEqual([(await ann('GET Patient/ann')).status, await ready()], [200, 200])
    await stopping.close()
    for (let at = 0; at < 5; at++) assert.equal((await ann('GET Patient/ann')).status, 503)
    assert.equal(await ready(), 503)
    const reply = await ann('GET Patient/ann')
    assert.equal(readIssue(reply), '503 transient: The upstream FHIR server does not answer. Try again soon.')
    assert.equal(reply.headers['retry-after'], '2')
    await stopping.reopen()
    assert.equal((await ann('GET Patient/ann')).status, 503, 'it is left alone for a while')
    now += 2_000
    assert.equal((await ann('GET Patient/ann')).status, 200)
    assert.equal(await ready(), 200)
    await fhir.close()
    await stopping.close()
  })
})
