import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { gzipSync } from 'node:zlib'
import { createLightFetch } from './light-fetch.ts'

describe('createLightFetch', () => {
  let server: Server
  let base = ''
  let fetchLightly: typeof fetch

  before(async () => {
    server = createServer(async (request, response) => {
      const { method, url = '/', headers } = request
      const body = (await request.toArray()).join('')
      if (url === '/empty') return response.writeHead(204).end()
      if (url === '/elsewhere') return response.writeHead(302, { location: '/echo' }).end()
      if (url === '/gzip') return response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync('"é"'))
      if (url === '/late') return response.write('begun')
      if (url === '/cut')
        return response.writeHead(200, { 'content-length': 9 }).write('a', () => response.destroy())
      const { authorization, 'content-type': type } = headers
      response.setHeader('set-cookie', ['a=1', 'b=2'])
      return response.end(JSON.stringify({ method, url, authorization, type, body }))
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    fetchLightly = createLightFetch({ issuerUrl: base, fhirBaseUrl: base, appUrl: base })
    // From now on `fetch` has connections.
    await fetch(`${base}/empty`)
  })
  after(() => {
    server.closeAllConnections()
    server.close()
  })

  const cases: readonly (readonly [name: string, path: string, init: RequestInit])[] = [
    ['a request with headers', '/echo?a=1&b=%20', { headers: { Authorization: 'Bearer x' } }],
    ['a form', '/echo', { method: 'POST', body: new URLSearchParams({ 'a b': 'é&' }) }],
    ['a text', '/echo', { method: 'POST', body: '{}', headers: { 'content-type': 'application/json' } }],
    ['a response without a body', '/empty', {}],
    ['a compressed response', '/gzip', {}],
    ['a redirect', '/elsewhere', {}],
    ['a redirect that is an error', '/elsewhere', { redirect: 'error' }],
    ['a redirect that is followed', '/elsewhere', { redirect: 'follow' }],
    ['a response that is cut off', '/cut', {}],
    ['a signal that was aborted before', '/echo', { signal: AbortSignal.abort() }],
  ]
  for (const [name, path, init] of cases)
    it(`has the outcome of fetch: ${name}`, async () => {
      const [light, own] = await Promise.all(
        [fetchLightly, fetch].map(send => observe(send, base + path, { redirect: 'manual', ...init })),
      )
      assert.deepEqual(light, own)
    })

  it('lets fetch send requests to other servers, whose response may have no end', async () => {
    const foreign = 'http://foreign.test'
    const fetchForeign = createLightFetch({ issuerUrl: foreign, fhirBaseUrl: foreign, appUrl: foreign })
    const response = await fetchForeign(`${base}/late`, { redirect: 'error' })
    assert.equal(response.status, 200)
    await response.body?.cancel()
  })

  it('fails like fetch when no server listens, and when the time is over', async () => {
    const closed = createServer().listen(0, '127.0.0.1')
    await once(closed, 'listening')
    const url = `http://127.0.0.1:${(closed.address() as AddressInfo).port}/`
    closed.close()
    const fetchClosed = createLightFetch({ issuerUrl: url, fhirBaseUrl: url, appUrl: url })
    const [light, own] = await Promise.all(
      [fetchClosed, fetch].map(send => observe(send, url, { redirect: 'manual' })),
    )
    assert.deepEqual(light, own)
    assert.equal(light?.code, 'ECONNREFUSED')
    const signal = AbortSignal.timeout(20)
    await assert.rejects(fetchLightly(`${base}/late`, { redirect: 'error', signal }), {
      name: 'TimeoutError',
    })
  })
})

async function observe(send: typeof fetch, url: string, init: RequestInit) {
  try {
    const response = await send(url, init)
    const { status, headers } = response
    return { status, url: response.url, cookies: headers.getSetCookie(), text: await response.text() }
  } catch (error) {
    assert(error instanceof Error)
    return { name: error.name, code: Object(error.cause).code }
  }
}
