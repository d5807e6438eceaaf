import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { describe, it } from 'node:test'
import { DRAIN_BYTES } from './limits.ts'
import { FORM, useServers } from './testing/make-server.ts'

const make = useServers()

describe('createServer: request ids', () => {
  it('adds a new id to every response and its log line (HTTP-1)', async () => {
    const { app, lines } = await make()
    const first = await app.inject('/page/1')
    const second = await app.inject('/nowhere')
    assert.match(String(first.headers['x-request-id']), /^[0-9A-HJKMNP-TV-Z]{4}(-[0-9A-HJKMNP-TV-Z]{4}){2}$/)
    assert.notEqual(first.headers['x-request-id'], second.headers['x-request-id'])
    assert.deepEqual(
      lines().map(line => line.requestId),
      [first.headers['x-request-id'], second.headers['x-request-id']],
    )
  })

  it('keeps a short and safe id of the caller', async () => {
    const { app } = await make()
    const response = await app.inject({ url: '/page/1', headers: { 'x-request-id': 'trace-1234.5:6_x' } })
    assert.equal(response.headers['x-request-id'], 'trace-1234.5:6_x')
  })

  for (const unsafe of ['abc', 'a b c d', '<script>', `${'x'.repeat(65)}`, 'line\u00e9', '']) {
    it(`replaces ${JSON.stringify(unsafe.slice(0, 12))}`, async () => {
      const { app } = await make()
      const response = await app.inject({ url: '/page/1', headers: { 'x-request-id': unsafe } })
      assert.notEqual(response.headers['x-request-id'], unsafe)
    })
  }

  it('adds an id to the response for a URL that cannot be parsed', async () => {
    const { app } = await make()
    const response = await app.inject('/%zz')
    assert.equal(response.statusCode, 400)
    assert.match(String(response.headers['x-request-id']), /^.{14}$/)
    assert.match(String(response.headers['content-security-policy']), /style-src 'self'/)
  })
})

describe('createServer: log', () => {
  it('has one line per request, without query, headers or body', async () => {
    const { app, lines, log } = await make()
    await app.inject({
      method: 'POST',
      url: '/form?launch=launch-secret&code=code-secret&state=state-secret&name=Juniper',
      headers: { ...FORM, authorization: 'Bearer bearer-secret', cookie: 'session=cookie-secret' },
      payload: 'username=robin&password=form-secret',
    })
    assert.equal(lines().length, 1)
    const [line] = lines()
    assert.deepEqual(
      { ...line, time: 0, ms: 0, requestId: '' },
      {
        level: 'info',
        time: 0,
        server: 'auth',
        requestId: '',
        method: 'POST',
        path: '/form',
        status: 200,
        ms: 0,
        address: '127.0.0.1',
        msg: 'Request',
      },
    )
    assert.doesNotMatch(log(), /secret|Juniper|robin/)
  })

  it('has probes and assets only at debug level', async () => {
    const { app, lines } = await make()
    await app.inject('/healthz')
    await app.inject('/readyz')
    assert.deepEqual(
      lines().map(line => line.level),
      ['debug', 'debug'],
    )
  })

  it('contains the error without its secrets', async () => {
    const { app, lines, log } = await make()
    assert.equal((await app.inject('/boom')).statusCode, 500)
    assert.deepEqual(
      lines().map(line => [line.level, line.msg]),
      [
        ['error', 'Request failed'],
        ['info', 'Request'],
      ],
    )
    assert.match(log(), /Broken by access_token=\[secret\]/)
    assert.doesNotMatch(log(), /access_token=abc/)
  })
})

describe('createServer: a body that is too large', () => {
  /** Sends it all before it reads anything, as many clients do. */
  async function sendAll(url: string, head: string, pieces: readonly Buffer[]): Promise<string> {
    const { hostname, port } = new URL(url)
    const socket = connect(Number(port), hostname).pause()
    const failed = once(socket, 'error').then(([error]) => Promise.reject(error))
    const sent = (async () => {
      for (const piece of [Buffer.from(head), ...pieces])
        if (!socket.write(piece)) await once(socket, 'drain')
      socket.resume()
      const [chunk] = await once(socket, 'data')
      return String(chunk)
    })()
    try {
      return await Promise.race([sent, failed])
    } finally {
      failed.catch(() => {})
      sent.catch(() => {})
      socket.destroy()
    }
  }

  const megabyte = Buffer.alloc(1024 * 1024, 0x20)
  const lines = (...more: readonly string[]) =>
    ['POST /form HTTP/1.1', 'host: localhost', 'content-type: application/json', ...more, '', ''].join('\r\n')

  it('gets a 413 even if the client sends the whole body before it reads (LIMIT-3)', async () => {
    const { app } = await make()
    const url = await app.listen({ port: 0, host: '127.0.0.1' })
    const pieces = Array.from({ length: 12 }, () => megabyte)
    const chunks = pieces.map(it => Buffer.concat([Buffer.from('100000\r\n'), it, Buffer.from('\r\n')]))
    const sized = await sendAll(url, lines(`content-length: ${12 * megabyte.length}`), pieces)
    assert.match(sized, /^HTTP\/1.1 413 /)
    const chunked = await sendAll(url, lines('transfer-encoding: chunked'), [
      ...chunks,
      Buffer.from('0\r\n\r\n'),
    ])
    assert.match(chunked, /^HTTP\/1.1 413 /)
    assert.match(chunked, /larger than 1048576 bytes/)
  })

  it('gets a 413 on a connection that is closed after the response, every time', async () => {
    const { app } = await make()
    const url = await app.listen({ port: 0, host: '127.0.0.1' })
    const pieces = Array.from({ length: 12 }, () => megabyte)
    const head = lines('connection: close', `content-length: ${12 * megabyte.length}`)
    for (const sent of [...Array(15).fill(head), ...Array(15).fill(head.replace('HTTP/1.1', 'HTTP/1.0'))])
      assert.match(await sendAll(url, sent, pieces), /^HTTP\/1.1 413 /)
  })

  it('is read to its end before the connection is closed', async () => {
    const { app } = await make()
    const url = await app.listen({ port: 0, host: '127.0.0.1' })
    const { hostname, port } = new URL(url)
    const socket = connect(Number(port), hostname)
    socket.write(lines('connection: close', `content-length: ${4 * megabyte.length}`))
    const [chunk] = await once(socket, 'data')
    assert.match(String(chunk), /^HTTP\/1.1 413 /)
    for (let at = 0; at < 4; at++) socket.write(megabyte)
    socket.resume()
    await once(socket, 'close')
    assert.equal(socket.errored, null)
  })

  it('is drained up to a limit, then the connection is closed', async () => {
    const { app } = await make()
    const url = await app.listen({ port: 0, host: '127.0.0.1' })
    const pieces = Array.from({ length: DRAIN_BYTES / megabyte.length + 16 }, () => megabyte)
    await assert.rejects(
      sendAll(url, lines(`content-length: ${pieces.length * megabyte.length}`), pieces),
      /EPIPE|ECONNRESET/,
    )
  })

  it('is drained up to twice the largest body that a route accepts', async () => {
    const { app } = await make({ largestBody: DRAIN_BYTES })
    const url = await app.listen({ port: 0, host: '127.0.0.1' })
    const pieces = Array.from({ length: DRAIN_BYTES / megabyte.length + 16 }, () => megabyte)
    const response = await sendAll(url, lines(`content-length: ${pieces.length * megabyte.length}`), pieces)
    assert.match(response, /^HTTP\/1.1 413 /)
  })

  it('is no failure of the server if the client closes the connection in the middle of it (HTTP-9)', async () => {
    const { app, lines: logged } = await make()
    const [arrived, failed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    app.addHook('preParsing', async () => arrived.resolve())
    app.addHook('onError', async () => failed.resolve())
    const { hostname, port } = new URL(await app.listen({ port: 0, host: '127.0.0.1' }))
    const socket = connect(Number(port), hostname)
    socket.write(`${lines('content-length: 100')}{`)
    await arrived.promise
    socket.destroy()
    await failed.promise
    await app.close()
    assert.deepEqual(
      logged().filter(({ level }) => level === 'error'),
      [],
    )
  })

  it('logs once that the database is unavailable, then the number of failed requests (STORE-6)', async () => {
    let now = 0
    const { app, lines } = await make({ clock: () => now })
    const ask = async () => {
      const reply = await app.inject('/full')
      assert.deepEqual([reply.statusCode, reply.headers['retry-after']], [503, '2'])
    }
    for (let times = 0; times < 3; times++) await ask()
    now = 60_000
    await ask()
    now = 200_000
    await ask()
    const logged = lines().filter(({ level }) => level === 'error')
    assert.deepEqual(
      logged.map(({ msg, failed, err }) => [msg, failed, err !== undefined]),
      [
        ['Database unavailable: requests get 503', undefined, true],
        ['Database unavailable: requests get 503', 3, false],
        ['Database unavailable: requests get 503', undefined, true],
      ],
    )
  })
})

describe('createServer: JSON that is nested too deeply', () => {
  it('gets a 400 that states the limits', async () => {
    const { app } = await make()
    const payload = `${'['.repeat(100_000)}${']'.repeat(100_000)}`
    const reply = await app.inject({
      method: 'POST',
      url: '/form',
      payload,
      headers: { 'content-type': 'application/json' },
    })
    assert.equal(reply.statusCode, 400)
    assert.match(reply.body, /more than 500 levels deep/)
    const plain = await app.inject({ method: 'POST', url: '/form', payload: { a: [1] } })
    assert.deepEqual(plain.json(), { a: [1] })
    const poisoned = '{"__proto__":{"a":1}}'
    const refused = await app.inject({
      method: 'POST',
      url: '/form',
      payload: poisoned,
      headers: { 'content-type': 'application/json' },
    })
    assert.equal(refused.statusCode, 400)
  })
})
