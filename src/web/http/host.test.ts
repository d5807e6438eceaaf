import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { after, before, describe, it } from 'node:test'
import type { FastifyInstance } from 'fastify'
import { createServer } from './index.ts'
import { findHostName } from './request.ts'

let app: FastifyInstance
before(async () => {
  app = await createServer({
    name: 'fhir',
    url: 'http://localhost:9000',
    errorStyle: path => (path.startsWith('/fhir') ? 'fhir' : 'page'),
  })
  app.all('/fhir/x', async () => ({ served: true }))
  await app.listen({ port: 0, host: '127.0.0.1' })
})
after(() => app.close())

/** The bytes that the server sends in response to these lines until it closes the connection. */
async function raw(...lines: readonly string[]): Promise<string> {
  const { port } = app.server.address() as AddressInfo
  const socket = connect(port, '127.0.0.1')
  await once(socket, 'connect')
  socket.write(`${lines.join('\r\n')}\r\n\r\n`)
  return text(socket)
}

describe('a request with two Host headers', () => {
  for (const second of ['localhost:9000', 'evil.test', ''])
    for (const name of ['Host', 'hOST'])
      it(`is refused if the second one is ${name}: ${second || '(empty)'}`, async () => {
        const response = await raw(
          'GET /fhir/x HTTP/1.1',
          'Host: localhost:9000',
          'Accept: */*',
          `${name}: ${second}`,
        )
        assert.match(response, /^HTTP\/1\.1 400 /)
        assert.match(response, /^connection: close\r$/im)
        assert.match(response, /OperationOutcome.*The request has more than one Host header/)
        assert.doesNotMatch(response, /served|evil/)
      })

  it('is refused on every path, and with HTTP/1.0 too (HTTP-10)', async () => {
    for (const line of [
      'GET /readyz HTTP/1.1',
      'GET /nowhere HTTP/1.1',
      'OPTIONS /fhir/x HTTP/1.1',
      'GET /fhir/x HTTP/1.0',
    ])
      assert.match(await raw(line, 'Host: a', 'Host: a'), /^HTTP\/1\.1 400 /, line)
  })

  it('closes the connection, so that the requests after it are not served', async () => {
    const two = ['GET /fhir/x HTTP/1.1', 'Host: a', 'Host: b', '', 'GET /fhir/x HTTP/1.1', 'Host: a']
    const response = await raw(...two)
    assert.deepEqual(response.match(/HTTP\/1\.1 \d+/g), ['HTTP/1.1 400'])
  })
})

describe('a request with one Host header or none', () => {
  it('is served with one', async () => {
    const response = await raw('GET /fhir/x HTTP/1.1', 'Host: a', 'X-Host: b', 'Connection: close')
    assert.match(response, /^HTTP\/1\.1 200 .*served/s)
  })

  it('is refused without one in HTTP/1.1, and served in HTTP/1.0 (HTTP-10)', async () => {
    assert.match(await raw('GET /fhir/x HTTP/1.1', 'Connection: close'), /^HTTP\/1\.1 400 /)
    assert.match(await raw('GET /fhir/x HTTP/1.0'), /^HTTP\/1\.1 200 /)
  })
})

describe('findHostName', () => {
  const hosts: readonly (readonly [header: string | undefined, name: string | undefined])[] = [
    ['localhost:9000', 'localhost'],
    ['LOCALHOST', 'LOCALHOST'],
    ['127.0.0.1:9000', '127.0.0.1'],
    ['[::1]:9000', '[::1]'],
    ['[::1]', '[::1]'],
    ['', ''],
    ['evil.test/.localhost', ''],
    ['evil.test#.localhost', ''],
    ['me@localhost', ''],
    ['localhost:9000:1', ''],
    [undefined, undefined],
  ]
  for (const [header, name] of hosts)
    it(`finds ${JSON.stringify(name)} in ${JSON.stringify(header)}`, () => {
      const headers = header === undefined ? {} : { host: header }
      assert.equal(findHostName({ url: '/portal', headers }), name)
    })

  it('prefers an absolute request target', () => {
    const headers = { host: 'localhost' }
    assert.equal(findHostName({ url: 'http://evil.test:1/portal?x=/', headers }), 'evil.test')
    assert.equal(findHostName({ url: '*', headers }), 'localhost')
  })
})
