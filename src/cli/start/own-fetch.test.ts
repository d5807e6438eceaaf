import assert from 'node:assert/strict'
import { once } from 'node:events'
import { Readable } from 'node:stream'
import { after, before, describe, it } from 'node:test'
import { setImmediate as yieldTurn } from 'node:timers/promises'
import { type FastifyInstance, fastify } from 'fastify'
import { findFreePorts } from './ephemeral.ts'
import { OwnServers } from './own-fetch.ts'

describe('OwnServers', () => {
  let app: FastifyInstance
  let base = ''
  let received = 0
  let ownFetch: typeof fetch

  before(async () => {
    ;({ app, base, ownFetch } = await openServer())
    app.server.on('request', () => received++)
    await app.listen({ port: Number(new URL(base).port), host: '127.0.0.1' })
  })
  after(() => app.close())

  const cases: readonly (readonly [name: string, path: string, init: RequestInit])[] = [
    ['a request with headers', '/echo?a=1&b=%20', { headers: { Authorization: 'Bearer x' } }],
    ['a form', '/echo', { method: 'POST', body: new URLSearchParams({ 'a b': 'é&' }) }],
    ['a text', '/echo', { method: 'POST', body: '{}', headers: { 'content-type': 'application/json' } }],
    ['a response without a body', '/empty', {}],
    ['a response of bytes', '/bytes', {}],
    ['a response that is streamed', '/stream', {}],
    ['a response that is cut off', '/cut', {}],
    ['a handler that fails', '/failing', {}],
    ['an unknown path', '/unknown', {}],
    ['a redirect', '/elsewhere', {}],
    ['a redirect that is an error', '/elsewhere', { redirect: 'error' }],
    ['a redirect without a location that is an error', '/nowhere', { redirect: 'error' }],
    ['a location without a redirect', '/created', { redirect: 'error' }],
    ['a redirect that is followed', '/elsewhere', { redirect: 'follow' }],
    ['a signal that was aborted before', '/echo', { signal: AbortSignal.abort() }],
  ]
  for (const [name, path, init] of cases)
    it(`has the outcome of fetch: ${name}`, async () => {
      const [own, network] = await Promise.all(
        [ownFetch, fetch].map(send => observe(send, base + path, { redirect: 'manual', ...init })),
      )
      assert.deepEqual(own, network)
    })

  it('passes a request to a server of this process without a connection, and any other over the network', async () => {
    const before = received
    const response = await ownFetch(`${base}/echo`, { redirect: 'manual' })
    assert.equal((await response.clone().json()).url, '/echo')
    assert.equal((await response.json()).url, '/echo')
    assert.equal(received, before)
    await new OwnServers(listUrls('http://foreign.test')).fetch(`${base}/echo`, { redirect: 'manual' })
    assert.equal(received, before + 1)
  })

  it('sends a request over the network if two servers have the same origin', async () => {
    const before = received
    const shared = new OwnServers({ ...listUrls(base), fhirBaseUrl: `${base}/fhir` })
    shared.add('auth', fastify())
    await shared.fetch(`${base}/echo`, { redirect: 'manual' })
    assert.equal(received, before + 1)
  })

  it('closes the connection of a request that is aborted', async () => {
    const abortion = new AbortController()
    const hanging = once(app.server, 'hanging')
    const response = ownFetch(`${base}/hanging`, { redirect: 'manual', signal: abortion.signal })
    const [socket] = await hanging
    abortion.abort()
    await assert.rejects(response, { name: 'AbortError' })
    assert.equal(socket.destroyed, true)
  })

  it('closes a response that only its handler waits for', async () => {
    const closed = once(app.server, 'response closed')
    await ownFetch(`${base}/watched`, { redirect: 'manual' })
    await closed
  })

  it('aborts a request that runs too long while a server closes', async () => {
    const closing = await openServer(1)
    await closing.app.ready()
    const response = closing.ownFetch(`${closing.base}/hanging`, { redirect: 'manual' })
    const aborted = assert.rejects(response, { message: 'fetch failed' })
    await closing.app.close()
    await aborted
  })

  it('finishes running requests before a server closes, and passes no further ones', async () => {
    const closing = await openServer()
    await closing.app.ready()
    const init = { redirect: 'manual' } as const
    const running = once(closing.app.server, 'slow')
    const response = closing.ownFetch(`${closing.base}/slow`, init)
    await running
    const closed = closing.app.close()
    await yieldTurn()
    closing.app.server.emit('continue')
    assert.equal(await (await response).text(), 'open')
    await closed
    await assert.rejects(closing.ownFetch(`${closing.base}/echo`, init), { message: 'fetch failed' })
  })
})

function listUrls(issuerUrl: string) {
  return { issuerUrl, fhirBaseUrl: 'http://fhir.test/fhir', appUrl: 'http://app.test' }
}

/** A server that does not listen yet. */
async function openServer(stopMs?: number) {
  const [port] = await findFreePorts(1)
  const base = `http://127.0.0.1:${port}`
  const app = createApp()
  const own = new OwnServers(listUrls(base))
  own.add('auth', app, stopMs)
  return { app, base, ownFetch: own.fetch }
}

function createApp(): FastifyInstance {
  const app = fastify({ forceCloseConnections: true })
  let state = 'open'
  app.addHook('onClose', async () => {
    state = 'closed'
  })
  app.addContentTypeParser('*', { parseAs: 'string' }, (_request, body, done) => done(null, body))
  app.get('/empty', (_request, reply) => reply.code(204).send())
  app.get('/elsewhere', (_request, reply) => reply.redirect('/echo'))
  app.get('/nowhere', (_request, reply) => reply.code(302).send())
  app.get('/created', (_request, reply) => reply.code(201).header('location', '/echo').send('created'))
  app.get('/bytes', (_request, reply) => reply.send(Buffer.from('é')))
  app.get('/stream', (_request, reply) => reply.send(Readable.from(['{"a":', '"é"}'])))
  app.get('/cut', (_request, reply) => reply.header('content-length', 9).send(Readable.from(beginText())))
  app.get('/failing', () => Promise.reject(new Error('failing')))
  app.get('/hanging', ({ raw }) => new Promise(() => app.server.emit('hanging', raw.socket)))
  app.get('/watched', (_request, reply) => {
    reply.raw.once('close', () => app.server.emit('response closed'))
    return reply.send()
  })
  app.get('/slow', async () => {
    app.server.emit('slow')
    await once(app.server, 'continue')
    return state
  })
  app.all('/echo', ({ method, url, headers, body, ip, host, protocol }, reply) => {
    const { authorization, 'content-type': type, 'content-length': length } = headers
    reply.header('set-cookie', ['a=1', 'b=2'])
    return { method, url, authorization, type, length, body, ip, host, protocol }
  })
  return app
}

function* beginText() {
  yield 'a'
  throw new Error('cut off')
}

async function observe(send: typeof fetch, url: string, init: RequestInit) {
  try {
    const response = await send(url, init)
    const { status, headers } = response
    return {
      status,
      url: response.url,
      cookies: headers.getSetCookie(),
      type: headers.get('content-type'),
      text: await response.text(),
    }
  } catch (error) {
    assert(error instanceof Error)
    return { name: error.name }
  }
}
