import assert from 'node:assert/strict'
import { once } from 'node:events'
import { Agent, request as httpRequest } from 'node:http'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { afterEach, describe, it } from 'node:test'
import type { FastifyInstance } from 'fastify'
import { createServer, listen, type ServerOptions, startDraining } from './index.ts'

const servers: FastifyInstance[] = []
afterEach(async () => {
  await Promise.all(servers.splice(0).map(server => server.close()))
})

async function open(options: Partial<ServerOptions> = {}): Promise<FastifyInstance> {
  const app = await createServer({ name: 'auth', url: 'http://localhost:9000', ...options })
  servers.push(app)
  return app
}

describe('listen and close', () => {
  it('listens on every host at one port, and skips an address that this machine does not have', async () => {
    const app = await open()
    const port = await listen(app, 0, ['127.0.0.1', '127.0.0.2', '203.0.113.7'])
    for (const host of ['127.0.0.1', '127.0.0.2']) {
      const response = await fetch(`http://${host}:${port}/healthz`)
      assert.equal(response.status, 200)
    }
  })

  it('rejects if the port is in use, even at a later host', async () => {
    const first = await open()
    const port = await listen(first, 0, ['127.0.0.2'])
    const second = await open()
    await assert.rejects(listen(second, port, ['127.0.0.1', '127.0.0.2']), { code: 'EADDRINUSE' })
  })

  for (const host of ['127.0.0.1', '127.0.0.2']) {
    it(`finishes a running request at ${host}, then closes idle connections`, async () => {
      const app = await open()
      const gate = Promise.withResolvers<void>()
      const arrived = Promise.withResolvers<void>()
      app.get('/slow', async () => {
        arrived.resolve()
        await gate.promise
        return { done: true }
      })
      const port = await listen(app, 0, ['127.0.0.1', '127.0.0.2'])
      const agent = new Agent({ keepAlive: true })
      const idle = get(`http://${host}:${port}/healthz`, agent)
      await idle
      const running = get(`http://${host}:${port}/slow`, agent)
      await arrived.promise
      const closed = app.close()
      gate.resolve()
      assert.deepEqual(await running, { status: 200, body: '{"done":true}' })
      await closed
      agent.destroy()
    })
  }

  it('reports draining in /readyz, then serves open connections once more and accepts no others', async () => {
    const app = await open()
    const port = await listen(app, 0, ['127.0.0.1'])
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    const ask = (path: string, by = agent) => fetchKept(`http://127.0.0.1:${port}${path}`, by)
    assert.deepEqual(await ask('/readyz'), [200, 'keep-alive', '{"status":"ready","checks":[]}'])
    startDraining(app)
    assert.deepEqual(await ask('/readyz'), [503, 'keep-alive', '{"status":"draining","checks":[]}'])
    // The longer it drains, the longer it waits for running requests.
    for (let count = 0; count < 100; count++) assert.equal((await ask('/healthz'))[0], 200)
    const closed = app.close()
    await new Promise(setImmediate)
    await assert.rejects(ask('/healthz', new Agent()), { code: 'ECONNREFUSED' })
    assert.deepEqual(await ask('/healthz'), [200, 'close', '{"status":"ok"}'])
    await closed
    agent.destroy()
  })

  it('aborts a request that does not end within the drain time', async () => {
    const app = await open({ drainMs: 50 })
    const arrived = Promise.withResolvers<void>()
    app.get('/endless', () => {
      arrived.resolve()
      return new Promise(() => {})
    })
    const port = await listen(app, 0, ['127.0.0.1'])
    const running = assert.rejects(get(`http://127.0.0.1:${port}/endless`, new Agent()))
    await arrived.promise
    await app.close()
    await running
  })

  it('sends 400 and a request id to data that is not HTTP', async () => {
    const app = await open()
    const port = await listen(app, 0, ['127.0.0.1'])
    const socket = connect(port, '127.0.0.1')
    socket.write('nonsense\r\n\r\n')
    let response = ''
    for await (const chunk of socket) response += String(chunk)
    assert.match(response, /^HTTP\/1.1 400 Bad Request\r\n/)
    assert.match(response, /\r\nx-request-id: \S{14}\r\n/i)
  })
})

function get(url: string, agent: Agent): Promise<{ status: number | undefined; body: string }> {
  return new Promise((resolve, reject) => {
    httpRequest(url, { agent }, async response => {
      let body = ''
      for await (const chunk of response) body += String(chunk)
      resolve({ status: response.statusCode, body })
    })
      .once('error', reject)
      .end()
  })
}

async function fetchKept(url: string, agent: Agent): Promise<readonly [number?, string?, string?]> {
  const sent = httpRequest(url, { agent }).end()
  const [reply] = await once(sent, 'response')
  return [reply.statusCode, reply.headers.connection, await text(reply)]
}
