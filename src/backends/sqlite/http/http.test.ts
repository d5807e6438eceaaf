import assert from 'node:assert/strict'
import { get } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { after, before, describe, it } from 'node:test'
import { brotliDecompressSync, gunzipSync, gzipSync } from 'node:zlib'
import { listProfiles } from '../../../fhir/index.ts'
import { fullAccess } from '../../../smart/index.ts'
import { createAuthenticator, type Fhir, patient, readIssue, startFhir } from '../testing/fhir.ts'

/** Sends the path unchanged; other clients normalize it. */
function ask(
  port: number,
  path: string,
): Promise<{ readonly status: number | undefined; readonly body: string }> {
  return new Promise((resolve, reject) => {
    get({ host: '127.0.0.1', port, path, agent: false }, async reply =>
      resolve({ status: reply.statusCode, body: await text(reply) }),
    ).on('error', reject)
  })
}

let fhir: Fhir
before(async () => {
  fhir = await startFhir({ bodyLimit: 10_000 })
  await fhir('PUT Patient/1', patient('1'))
})
after(() => fhir.close())

describe('bodies', () => {
  const post = (body: string, contentType: string) =>
    fhir('POST Patient', body, { 'content-type': contentType })
  const valid = '{"resourceType":"Patient"}'

  it('are FHIR JSON or JSON, in UTF-8 (FHIR-2)', async () => {
    for (const type of [
      'application/fhir+json',
      'application/json',
      'application/fhir+json; charset=utf-8',
      'application/json; fhirVersion=4.0',
    ])
      assert.equal((await post(valid, type)).status, 201, type)
    for (const type of [
      'text/plain',
      'application/xml',
      'application/fhir+xml',
      'application/json; charset=latin1',
      'application/json-patch+json',
    ])
      assert.equal(
        readIssue(await post(valid, type)),
        '415 not-supported: Cannot read body: expected application/fhir+json or application/json',
        type,
      )
  })

  it('get 400 if they are not JSON', async () => {
    for (const body of ['{', 'nonsense', '{"resourceType":"Patient"}}', "{'a':1}"])
      assert.equal(
        readIssue(await post(body, 'application/fhir+json')),
        '400 structure: Cannot read body: it is not valid JSON in UTF-8',
        body,
      )
    const reply = await fhir.app.inject({
      method: 'POST',
      url: '/fhir/Patient',
      headers: { 'content-type': 'application/json' },
      payload: Buffer.from([0x22, 0xff, 0x22]),
    })
    assert.equal(reply.statusCode, 400)
    assert.equal(
      readIssue(await post('', 'application/fhir+json')),
      '400 structure: Cannot read body: it is empty',
    )
  })

  it('get 413 over the limit, and nothing is written', async () => {
    const before = (await fhir('GET Patient?_summary=count')).body.total
    const reply = await post(
      JSON.stringify(patient('x', { language: 'x'.repeat(20_000) })),
      'application/json',
    )
    assert.deepEqual([reply.status, reply.body.issue?.[0]?.code], [413, 'too-long'])
    assert.equal(reply.headers['content-type'], 'application/fhir+json; charset=utf-8')
    assert.equal((await fhir('GET Patient?_summary=count')).body.total, before)
  })

  it('are read only after the token is checked', async () => {
    const guarded = await startFhir({ guard: createAuthenticator({ all: fullAccess }), bodyLimit: 100 })
    assert.equal((await guarded('POST Patient', 'x'.repeat(1000))).status, 401)
    assert.equal((await guarded.as('all')('POST Patient', 'x'.repeat(1000))).status, 413)
    await guarded.close()
  })
})

describe('formats', () => {
  it('are JSON by _format or Accept (FHIR-2)', async () => {
    const read = (query: string, accept?: string) =>
      fhir(`GET Patient/1${query}`, undefined, accept === undefined ? {} : { accept })
    for (const accept of [
      'application/fhir+json',
      'application/json',
      '*/*',
      'text/html,application/xml;q=0.9,*/*;q=0.8',
      'application/fhir+json; fhirVersion=4.0',
      'application/*',
    ])
      assert.equal((await read('', accept)).status, 200, accept)
    for (const format of ['json', 'application/json', 'application/fhir%2Bjson', 'application/fhir+json'])
      assert.equal((await read(`?_format=${format}`, 'application/fhir+xml')).status, 200, format)
    for (const reply of [
      await read('', 'application/fhir+xml'),
      await read('?_format=xml'),
      await read('', 'text/turtle'),
    ])
      assert.equal(readIssue(reply), '406 not-supported: Only application/fhir+json is supported.')
  })
})

describe('URLs', () => {
  it('work with and without a trailing slash at the base (ROUTE-9)', async () => {
    for (const url of ['/fhir', '/fhir/', '/fhir?_type=Patient', '/fhir/?_type=Patient']) {
      const reply = await fhir.app.inject({ url })
      assert.deepEqual([reply.statusCode, reply.json().resourceType], [200, 'Bundle'], url)
    }
  })

  it('are refused if they are not normalized (ROUTE-7)', async () => {
    await fhir.app.listen({ port: 0, host: '127.0.0.1' })
    const { port } = fhir.app.server.address() as AddressInfo
    for (const url of [
      '/fhir//Patient/1',
      '/fhir/Patient//1',
      '/fhir/Patient/1/',
      '/fhir/./Patient/1',
      '/fhir/x/../Patient/1',
      '/fhir/Patient/%31',
      '/fhir/%50atient/1',
      '/fhir/Patient%2F1',
      '/fhir/Patient;x=y/1',
      '/fhir/Patient/1;x',
      '/fhir/Patient/%zz',
      '/fhir/patient/1',
      '/fhir/Patient/1%00',
      '/fhir/Patient?name=%zz',
    ]) {
      const { status, body } = await ask(port, url)
      assert(status === 400 || status === 404, `${url} ${status}`)
      assert.equal(JSON.parse(body).resourceType, 'OperationOutcome', url)
    }
    assert.equal((await ask(port, '/fhir/Patient/1')).status, 200)
  })

  it('are not FHIR outside the base', async () => {
    for (const url of ['/fhirx/Patient/1', '/Patient/1', '/FHIR/Patient/1'])
      assert.equal((await fhir.app.inject({ url })).statusCode, 404, url)
    assert.equal((await fhir.app.inject({ url: '/healthz' })).statusCode, 200)
    assert.equal((await fhir.app.inject({ url: '/readyz' })).statusCode, 200)
  })

  it('accept only their methods', async () => {
    for (const [line, allow] of [
      ['POST Patient/1', 'GET, HEAD, PUT, PATCH, DELETE'],
      ['DELETE metadata', 'GET, HEAD'],
      ['PUT Patient/1/_history/1', 'GET, HEAD'],
      ['GET Patient/_search', 'POST'],
    ] as const) {
      const { status, headers } = await fhir(line, {})
      assert.deepEqual([status, headers.allow], [405, allow], line)
    }
    assert.equal((await fhir('POST Patient/1', {}, { 'x-http-method-override': 'DELETE' })).status, 400)
  })

  it('work for a server at the root of its host', async () => {
    const root = await startFhir({ baseUrl: 'http://root.test' })
    const reply = await root.app.inject({ url: '/metadata' })
    assert.deepEqual([reply.statusCode, reply.json().implementation.url], [200, 'http://root.test'])
    assert.equal((await root.app.inject({ url: '/' })).statusCode, 200)
    assert.equal((await root.app.inject({ url: '/healthz' })).statusCode, 200)
    await root.close()
  })
})

describe('cross-origin requests', () => {
  const origin = 'https://app.test'

  it('are permitted from any origin without credentials, unless origins are configured (FHIR-10)', async () => {
    const reply = await fhir('GET Patient/1', undefined, { origin, 'sec-fetch-site': 'cross-site' })
    assert.equal(reply.headers['access-control-allow-origin'], '*')
    assert.equal(reply.headers['access-control-allow-credentials'], undefined)
    assert.match(String(reply.headers['access-control-expose-headers']), /ETag.*Location.*X-Request-Id/)
    const written = await fhir(
      'POST Patient',
      { resourceType: 'Patient' },
      { origin, 'sec-fetch-site': 'cross-site' },
    )
    assert.equal(written.status, 201)
  })

  it('begin with a preflight that needs no token (BEARER-3)', async () => {
    const listed = await startFhir({ guard: createAuthenticator({}), origins: [origin] })
    const preflight = {
      'access-control-request-method': 'PUT',
      'access-control-request-headers': 'authorization',
    }
    const reply = await listed('OPTIONS Patient/1', undefined, { origin, ...preflight })
    assert.deepEqual([reply.status, reply.text], [204, ''])
    assert.equal(reply.headers['access-control-allow-origin'], origin)
    assert.match(String(reply.headers['access-control-allow-methods']), /PUT/)
    assert.match(String(reply.headers['access-control-allow-headers']), /Authorization.*If-Match/)
    const other = await listed('OPTIONS Patient/1', undefined, { origin: 'https://evil.test', ...preflight })
    assert.equal(other.headers['access-control-allow-origin'], undefined)
    assert.equal(other.headers.vary, 'Origin')
    const refused = await listed('GET Patient/1', undefined, { origin })
    assert.deepEqual([refused.status, refused.headers['access-control-allow-origin']], [401, origin])
    const open = await listed('GET metadata', undefined, { origin: 'https://evil.test' })
    assert.equal(open.headers['access-control-allow-origin'], '*')
    await listed.close()
  })
})

describe('metadata', () => {
  it('is a CapabilityStatement that matches the behaviour of the server (FHIR-1, FHIR-19)', async () => {
    const server = await startFhir({
      smartConfiguration: () => ({
        authorization_endpoint: 'https://a.test/authorize',
        token_endpoint: 'https://a.test/token',
      }),
    })
    const { body, headers } = await server('GET metadata')
    assert.equal(headers['content-type'], 'application/fhir+json; charset=utf-8')
    assert.equal(
      (await server('POST CapabilityStatement/$validate', body)).body.issue?.[0]?.severity,
      'information',
    )
    const [rest] = body.rest as readonly {
      security: { extension: readonly { extension: readonly { url: string; valueUri: string }[] }[] }
      resource: readonly {
        type: string
        supportedProfile?: readonly string[]
        searchParam: readonly { name: string }[]
      }[]
    }[]
    assert.deepEqual(rest?.security.extension[0]?.extension, [
      { url: 'authorize', valueUri: 'https://a.test/authorize' },
      { url: 'token', valueUri: 'https://a.test/token' },
    ])
    assert.deepEqual(body.instantiates, ['http://hl7.org/fhir/us/core/CapabilityStatement/us-core-server'])
    const condition = rest?.resource.find(it => it.type === 'Condition')
    assert.deepEqual(condition?.supportedProfile, listProfiles('Condition'))
    assert.ok(rest?.resource.every(it => it.supportedProfile?.length !== 0))
    for (const { name } of condition?.searchParam ?? [])
      assert.equal((await server(`GET Condition?${name}:missing=true`)).status, 200, name)
    assert.equal((await server('GET Condition?nothing:missing=true')).status, 400)
    const configuration = await server('GET .well-known/smart-configuration')
    assert.equal(configuration.body.token_endpoint, 'https://a.test/token')
    assert.equal(configuration.headers['content-type'], 'application/json; charset=utf-8')
    await server.close()
  })
})

describe('.well-known/smart-configuration', () => {
  it('is JSON whatever Accept says, for any origin (DISCOVERY-1)', async () => {
    const server = await startFhir({ smartConfiguration: () => ({ token_endpoint: 'https://a.test/token' }) })
    for (const accept of [
      'application/fhir+xml',
      'text/html',
      'application/json',
      '*/*',
      'image/png;q=0.1',
    ]) {
      const headers = { accept, origin: 'https://any.test' }
      const answer = await server('GET .well-known/smart-configuration', undefined, headers)
      assert.equal(answer.status, 200, accept)
      assert.equal(answer.headers['content-type'], 'application/json; charset=utf-8')
      assert.equal(answer.headers['access-control-allow-origin'], '*')
    }
    assert.equal((await server('GET metadata', undefined, { accept: 'application/fhir+xml' })).status, 406)
    await server.close()
  })
})

describe('compression', () => {
  const long = 'x'.repeat(2_000)
  before(async () => {
    await fhir('PUT Patient/long', patient('long', { name: [{ family: long }] }))
  })
  const inject = (method: 'GET' | 'HEAD', path: string, accepted?: string) =>
    fhir.app.inject({
      method,
      url: `/fhir/${path}`,
      headers: accepted === undefined ? {} : { 'accept-encoding': accepted },
    })

  it('applies if the client accepts it, and does not change the ETag (FHIR-9)', async () => {
    const plain = await inject('GET', 'Patient/long')
    assert.equal(plain.headers['content-encoding'], undefined)
    assert.match(String(plain.headers.vary), /Accept-Encoding/)
    for (const [accepted, encoding, decode] of [
      ['gzip', 'gzip', gunzipSync],
      ['gzip;q=1.0, br;q=0', 'gzip', gunzipSync],
      ['gzip, deflate, br', 'br', brotliDecompressSync],
    ] as const) {
      const reply = await inject('GET', 'Patient/long', accepted)
      assert.equal(reply.headers['content-encoding'], encoding)
      assert.match(String(reply.headers.vary), /Accept-Encoding/)
      assert.equal(reply.headers.etag, plain.headers.etag)
      assert.ok(reply.rawPayload.length < plain.rawPayload.length / 4)
      assert.equal(decode(reply.rawPayload).toString(), plain.body)
    }
    for (const accepted of ['', 'identity', 'gzip;q=0', 'zstd'])
      assert.equal((await inject('GET', 'Patient/long', accepted)).body, plain.body, accepted)
    const metadata = await inject('GET', 'metadata', 'gzip')
    assert.ok(metadata.rawPayload.length < 60_000)
  })

  it('does not apply to short responses', async () => {
    const reply = await inject('GET', 'Patient/1', 'gzip')
    assert.deepEqual([reply.headers['content-encoding'], reply.headers.vary], [undefined, undefined])
  })

  it('has the same headers for HEAD as for GET', async () => {
    const plain = await inject('HEAD', 'Patient/long')
    const { body } = await inject('GET', 'Patient/long')
    assert.equal(plain.headers['content-length'], String(Buffer.byteLength(body)))
    const reply = await inject('HEAD', 'Patient/long', 'gzip')
    assert.deepEqual(
      [reply.body, reply.headers['content-encoding'], reply.headers['content-length'], reply.headers.etag],
      ['', 'gzip', undefined, plain.headers.etag],
    )
  })
})

describe('compressed bodies', () => {
  const send = async (payload: Buffer, encoding: string, path = 'Patient', more = {}) => {
    const headers = { 'content-type': 'application/fhir+json', 'content-encoding': encoding, ...more }
    const reply = await fhir.app.inject({ method: 'POST', url: `/fhir/${path}`, headers, payload })
    return { status: reply.statusCode, headers: reply.headers, text: reply.body, body: reply.json() }
  }
  const valid = Buffer.from('{"resourceType":"Patient"}')

  it('are read if they are gzip', async () => {
    for (const encoding of ['gzip', 'x-gzip', 'GZIP']) {
      const reply = await send(gzipSync(valid), encoding)
      assert.equal(reply.status, 201, reply.text)
    }
    assert.equal((await send(valid, 'identity')).status, 201)
    const form = { 'content-type': 'application/x-www-form-urlencoded' }
    const found = await send(gzipSync('_id=1'), 'gzip', 'Patient/_search', form)
    assert.equal(found.body.total, 1)
  })

  it('get 415 with Accept-Encoding for another encoding, and 400 if they are damaged', async () => {
    for (const encoding of ['br', 'deflate', 'gzip, gzip', 'compress']) {
      const reply = await send(gzipSync(valid), encoding)
      assert.equal(readIssue(reply).slice(0, 17), '415 not-supported')
      assert.equal(reply.headers['accept-encoding'], 'gzip')
    }
    for (const payload of [valid, gzipSync(valid).subarray(0, -6), Buffer.alloc(0)])
      assert.equal((await send(payload, 'gzip')).status, 400)
    const form = { 'content-type': 'application/x-www-form-urlencoded' }
    assert.equal((await send(valid, 'gzip', 'Patient/_search', form)).status, 400)
  })

  it('get 413 if they exceed the limit after decompression (FHIR-9)', async () => {
    const bomb = gzipSync(Buffer.alloc(50_000_000, ' '))
    assert.equal((await send(bomb.subarray(0, 9_000), 'gzip')).status, 413)
    assert.equal((await send(gzipSync(Buffer.alloc(10_001, ' ')), 'gzip')).status, 413)
  })
})

describe('a patch of another type', () => {
  it('gets 415 with the accepted types (FHIR-8)', async () => {
    const reply = await fhir('PATCH Patient/1', '[]', { 'content-type': 'application/merge-patch+json' })
    assert.equal(reply.status, 415)
    assert.match(String(reply.headers['accept-patch']), /^application\/json-patch\+json/)
    const create = await fhir('POST Patient', '<Patient/>', { 'content-type': 'application/fhir+xml' })
    assert.deepEqual([create.status, create.headers['accept-patch']], [415, undefined])
  })
})
