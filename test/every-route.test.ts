import assert from 'node:assert/strict'
import { once } from 'node:events'
import { Agent, type IncomingMessage, type OutgoingHttpHeaders, request } from 'node:http'
import { text } from 'node:stream/consumers'
import { after, before, describe, it } from 'node:test'
import { routesOf } from '../src/web/index.ts'
import { type Stack, startStack } from './support/stack.ts'

const SERVERS = ['auth', 'fhir', 'app'] as const
type ServerName = (typeof SERVERS)[number]

const agent = new Agent({ keepAlive: true })
let stack: Stack
before(async () => {
  stack = await startStack({ env: { SMART_SAMPLE_PATIENTS: '0', SMART_ALLOWED_HOSTS: 'ehr.test' } })
})
after(async () => {
  agent.destroy()
  await stack?.close()
})

interface Route {
  readonly method: string
  readonly path: string
}

/** Every route of a server with a path that leads to it, a preflight, and a path that leads nowhere. */
function routesFor(name: ServerName): readonly Route[] {
  const routes = routesOf(stack[name]).map(({ method, path }) => ({
    method,
    path: path.replace('*', 'Patient/1').replace(/:\w+/g, 'x'),
  }))
  return [...routes, { method: 'OPTIONS', path: '/fhir/Patient' }, { method: 'GET', path: '/nowhere' }]
}

async function ask(
  name: ServerName,
  route: Route,
  headers: OutgoingHttpHeaders,
): Promise<{ readonly reply: IncomingMessage; readonly body: string }> {
  const port = stack.settings[`${name}Port`]
  const sent = request({ host: '127.0.0.1', port, agent, ...route, headers })
  sent.end()
  const [reply] = await once(sent, 'response')
  return { reply, body: await text(reply) }
}

describe('a request that names a foreign host, on loopback', () => {
  for (const name of SERVERS)
    for (const host of ['evil.test', 'localhost.evil.test:9000', '0.0.0.0'])
      it(`is refused by every route of the ${name} server: ${host}`, async () => {
        const headers = { host, origin: 'http://evil.test', 'x-forwarded-host': 'localhost' }
        for (const route of routesFor(name)) {
          const { reply, body } = await ask(name, route, headers)
          const where = `${route.method} ${route.path}`
          assert.equal(reply.statusCode, 421, where)
          if (route.method !== 'HEAD') assert.match(body, /SMART_ALLOWED_HOSTS/, where)
          assert.equal(reply.headers['set-cookie'], undefined, where)
          assert.equal(reply.headers['access-control-allow-origin'], undefined, where)
        }
      })

  for (const name of SERVERS)
    it(`is told from loopback names and those of the settings by the ${name} server`, async () => {
      for (const host of ['localhost:1', '127.0.0.1', '[::1]:9000', 'app.localhost', 'ehr.test']) {
        const { reply } = await ask(name, { method: 'GET', path: '/healthz' }, { host })
        assert.equal(reply.statusCode, 200, host)
      }
    })
})
