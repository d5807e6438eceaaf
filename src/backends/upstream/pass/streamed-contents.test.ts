import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type ClientRequest, type IncomingMessage, request as sendRequest } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { after, before, beforeEach, describe, it } from 'node:test'
import { createOutcome, limits } from '../../../fhir/index.ts'
import { type Authenticator, fullAccess, type Grant } from '../../../smart/index.ts'
import { createLogger } from '../../../web/http/index.ts'
import { createAuthenticator, type Fhir, patientAccess } from '../../sqlite/testing/fhir.ts'
import { type HostileUpstream, json, startHostile } from '../testing/hostile-upstream.ts'
import { startGateway } from '../testing/start-gateway.ts'

const MEGABYTE = 1024 * 1024
const LIMIT = 12 * MEGABYTE
const CHUNK = Buffer.from(Array.from({ length: 65_537 }, (_, at) => (at * 31) % 256))

/** Chunks whose length is not a multiple of three. */
function* repeatChunk(size: number): Generator<Buffer> {
  for (let left = size; left > 0; left -= CHUNK.length) yield CHUNK.subarray(0, Math.min(left, CHUNK.length))
}

const GRANT: Grant = { subject: 'user', scopes: [] }

interface Upload {
  readonly token?: string
  readonly line?: string
  readonly size: number
  /** The length that the client states; none by default. */
  readonly stated?: number
  readonly patient?: string
  readonly provenance?: object
  /** Called before the last chunk. */
  readonly atEnd?: () => void
}

interface Received {
  readonly status: number | undefined
  readonly headers: IncomingMessage['headers']
  readonly body: string
}

describe('the content of a large Binary', () => {
  let upstream: HostileUpstream
  let fhir: Fhir
  let port: number
  let isRevoked = false
  const lines: string[] = []

  const callers = createAuthenticator({ all: fullAccess, ann: patientAccess('ann') })
  const guard: Authenticator = {
    authenticate: authorization =>
      isRevoked
        ? { allowed: false, status: 401, headers: {}, outcome: createOutcome('login', 'The token has ended') }
        : addGrant(callers.authenticate(authorization)),
  }
  let clientId: string | undefined
  const addGrant = async (result: ReturnType<Authenticator['authenticate']>) => {
    const caller = await result
    return caller.allowed && clientId !== undefined ? { ...caller, grant: { ...GRANT, clientId } } : caller
  }

  before(async () => {
    upstream = await startHostile()
    const logger = createLogger({ level: 'warn', destination: { write: line => lines.push(line) } })
    fhir = await startGateway(upstream.url, { guard, logger, profile: 'strict', contentLimit: LIMIT })
    await fhir.app.listen({ port: 0, host: '127.0.0.1' })
    port = (fhir.app.server.address() as AddressInfo).port
  })
  after(async () => {
    await fhir.close()
    await upstream.close()
  })
  beforeEach(() => {
    isRevoked = false
    clientId = undefined
    upstream.answer((request, response) => {
      if (request.method === 'GET') return json(response, {}, 404)
      const location = `${upstream.url}/Binary/b/_history/1`
      return response.writeHead(201, { etag: 'W/"1"', location }).end()
    })
  })

  async function upload({
    token = 'ann',
    line = 'POST Binary',
    size,
    stated,
    patient = 'ann',
    provenance,
    atEnd,
  }: Upload): Promise<Received> {
    const [method = '', path = ''] = line.split(' ')
    const sent = sendRequest({
      host: '127.0.0.1',
      port,
      method,
      path: `/fhir/${path}`,
      headers: {
        authorization: `Bearer ${token}`,
        'content-type': 'application/pdf',
        'x-security-context': `Patient/${patient}`,
        ...(stated !== undefined && { 'content-length': String(stated) }),
        ...(provenance && { 'x-provenance': JSON.stringify(provenance) }),
      },
    })
    const answered = once(sent, 'response') as Promise<[IncomingMessage]>
    // A refusal may close the connection before everything is sent.
    sent.on('error', () => undefined)
    let isAnswered = false
    const answeredOnce = answered.finally(() => {
      isAnswered = true
    })
    let left = size
    for (const chunk of repeatChunk(size)) {
      left -= chunk.length
      if (left === 0) atEnd?.()
      if (!sent.write(chunk) && !isAnswered) await Promise.race([once(sent, 'drain'), answeredOnce])
    }
    sent.end()
    const [response] = await answeredOnce
    return { status: response.statusCode, headers: response.headers, body: await text(response) }
  }

  /** Sends the beginning of a content, until it arrives at the upstream. */
  async function beginUpload(): Promise<ClientRequest> {
    const sent = sendRequest({
      host: '127.0.0.1',
      port,
      method: 'POST',
      path: '/fhir/Binary',
      headers: {
        authorization: 'Bearer ann',
        'content-type': 'image/png',
        'x-security-context': 'Patient/ann',
      },
    })
    sent.on('error', () => undefined)
    const arriving = upstream.awaitRequest('POST')
    sent.write(CHUNK)
    await arriving
    return sent
  }

  const countWrites = () => upstream.seen.filter(({ line }) => !line.startsWith('GET')).length

  for (const stated of [undefined, 10 * MEGABYTE])
    it(`is sent to the upstream while it arrives, ${stated ? 'with' : 'without'} a stated length`, async () => {
      for (const [token, line] of [
        ['ann', 'POST Binary'],
        ['ann', 'PUT Binary/b'],
        ['all', 'POST Binary'],
      ] as const) {
        const { status, headers, body } = await upload({
          token,
          line,
          size: 10 * MEGABYTE,
          ...(stated !== undefined && { stated }),
        })
        assert.deepEqual([status, headers.etag, body], [201, 'W/"1"', ''], body)
        assert.equal(headers.location, 'http://fhir.test/fhir/Binary/b/_history/1')
        const seen = upstream.seen.at(-1)
        assert.equal(seen?.headers['content-length'] !== undefined, stated !== undefined)
        const { data, ...rest } = JSON.parse(seen?.body ?? '')
        assert.deepEqual(rest, {
          resourceType: 'Binary',
          ...(line.startsWith('PUT') && { id: 'b' }),
          contentType: 'application/pdf',
          securityContext: { reference: 'Patient/ann' },
        })
        const expected = Buffer.concat([...repeatChunk(10 * MEGABYTE)])
        assert.ok(Buffer.from(data, 'base64').equals(expected))
        assert.equal(data, expected.toString('base64'))
      }
    })

  it('is refused before it is sent on if the caller may not store it (LIMIT-9)', async () => {
    const writes = countWrites()
    assert.equal((await upload({ size: 6 * MEGABYTE, patient: 'bob' })).status, 403)
    assert.equal((await upload({ size: 6 * MEGABYTE, stated: 6 * MEGABYTE, patient: 'bob' })).status, 403)
    assert.equal(countWrites(), writes)
  })

  it('is refused with X-Provenance, and not left out of the transaction (WRITE-15)', async () => {
    const provenance = {
      resourceType: 'Provenance',
      recorded: '2026-01-05T10:00:00Z',
      target: [{ reference: 'Patient/ann' }],
      agent: [{ who: { display: 'Import' } }],
    }
    const writes = countWrites()
    for (const token of ['ann', 'all'])
      for (const stated of [undefined, 6 * MEGABYTE]) {
        const { status, body } = await upload({
          token,
          size: 6 * MEGABYTE,
          provenance,
          ...(stated !== undefined && { stated }),
        })
        assert.equal(status, 400, body)
        assert.match(body, /Cannot accept X-Provenance/)
      }
    assert.equal(countWrites(), writes)
  })

  it('is not stored if it is larger than the limit (LIMIT-9)', async () => {
    const writes = countWrites()
    for (const stated of [undefined, 13 * MEGABYTE]) {
      const { status, body } = await upload({
        size: 13 * MEGABYTE,
        ...(stated !== undefined && { stated }),
      })
      assert.equal(status, 413, body)
      assert.match(body, /larger than 12582912 bytes/)
    }
    assert.equal(countWrites(), writes)
  })

  it('is not stored if the token ends while it arrives (LIMIT-9)', async () => {
    const writes = countWrites()
    const atEnd = () => {
      isRevoked = true
    }
    const { status, body } = await upload({ size: 6 * MEGABYTE, atEnd })
    assert.equal(status, 401, body)
    assert.equal(countWrites(), writes)
  })

  it('is not stored if the client disconnects, which the gateway does not take for a failure of the upstream', async () => {
    const writes = countWrites()
    for (let at = 0; at < 10; at++) (await beginUpload()).destroy()
    assert.deepEqual(
      lines.filter(line => line.includes('Cannot reach the upstream')),
      [],
    )
    assert.equal((await upload({ size: 6 * MEGABYTE })).status, 201)
    assert.equal(countWrites(), writes + 1)
  })

  it('is refused while many others arrive', async () => {
    const others: ClientRequest[] = []
    for (let at = 0; at < limits.CONTENTS_AT_ONCE; at++) others.push(await beginUpload())
    const { status, headers, body } = await upload({ size: 6 * MEGABYTE })
    assert.deepEqual([status, headers['retry-after']], [503, '5'], body)
    const received = others.map(it => once(it, 'response'))
    for (const other of others) other.end()
    await Promise.all(received)
    assert.equal((await upload({ size: 6 * MEGABYTE })).status, 201)
  })

  it('is refused while others of the same grant arrive, but not to another grant', async () => {
    clientId = 'one'
    const others: ClientRequest[] = []
    for (let at = 0; at < limits.CONTENTS_OF_GRANT; at++) others.push(await beginUpload())
    assert.equal((await upload({ size: 6 * MEGABYTE })).status, 503)
    clientId = 'another'
    assert.equal((await upload({ size: 6 * MEGABYTE })).status, 201)
    clientId = 'one'
    const received = others.map(it => once(it, 'response'))
    for (const other of others) other.end()
    await Promise.all(received)
    assert.equal((await upload({ size: 6 * MEGABYTE })).status, 201)
  })

  it('is not sent again, and its refusal by the upstream is passed on', async () => {
    upstream.answer((request, response) =>
      request.method === 'GET' ? json(response, {}, 404) : response.writeHead(401).end(),
    )
    const writes = countWrites()
    assert.equal((await upload({ size: 6 * MEGABYTE })).status, 502)
    assert.equal(countWrites(), writes + 1)
  })
})

describe('a refused upload of any size that is accepted', () => {
  it('gets its refusal, also if the client sends everything before it reads', async () => {
    const upstream = await startHostile()
    const guard = createAuthenticator({})
    const fhir = await startGateway(upstream.url, { guard, contentLimit: 100 * MEGABYTE })
    await fhir.app.listen({ port: 0, host: '127.0.0.1' })
    const socket = connect((fhir.app.server.address() as AddressInfo).port, '127.0.0.1').pause()
    try {
      const size = 100 * MEGABYTE
      const head = ['POST /fhir/Binary HTTP/1.1', 'host: x', 'content-type: application/pdf']
      socket.write([...head, `content-length: ${size}`, '', ''].join('\r\n'))
      const closed = once(socket, 'close')
      for (const chunk of repeatChunk(size))
        if (!socket.write(chunk)) await Promise.race([once(socket, 'drain'), closed])
      assert.ok(!socket.destroyed, 'the server has closed the connection')
      socket.resume()
      const [answer] = await once(socket, 'data')
      assert.match(String(answer), /^HTTP\/1.1 401 /)
    } finally {
      socket.destroy()
      await fhir.close()
      await upstream.close()
    }
  })
})
