import assert from 'node:assert/strict'
import { once } from 'node:events'
import { Agent, type IncomingMessage, type OutgoingHttpHeaders, request } from 'node:http'
import { text } from 'node:stream/consumers'
import { after, before, describe, it } from 'node:test'
import { countRecords, findRecords } from '../src/audit/index.ts'
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
  body = '',
): Promise<{ readonly reply: IncomingMessage; readonly body: string }> {
  const port = stack.settings[`${name}Port`]
  const sent = request({ host: '127.0.0.1', port, agent, ...route, headers })
  sent.end(body)
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

describe('a flood of anonymous requests', () => {
  const form = { 'content-type': 'application/x-www-form-urlencoded' }
  const floods: readonly (readonly [
    kind: string,
    name: ServerName,
    send: (number: number) => readonly [Route, OutgoingHttpHeaders?, string?],
  ])[] = [
    ['FHIR requests without a token', 'fhir', at => [{ method: 'GET', path: `/fhir/Patient/${at}` }]],
    [
      'FHIR requests with tokens that are none',
      'fhir',
      at => [{ method: 'PUT', path: '/fhir/Patient/1' }, { authorization: `Bearer a${at}` }],
    ],
    ['public FHIR requests', 'fhir', () => [{ method: 'GET', path: '/fhir/metadata' }]],
    [
      'authorization requests of unknown clients',
      'auth',
      at => [{ method: 'GET', path: `/oauth2/authorize?client_id=x${at}` }],
    ],
    [
      'authorization requests of a known client',
      'auth',
      at => [
        { method: 'GET', path: `/oauth2/authorize?client_id=sallyport-app&redirect_uri=https://x${at}` },
      ],
    ],
    [
      'token requests of unknown clients',
      'auth',
      at => [
        { method: 'POST', path: '/oauth2/token' },
        form,
        `grant_type=authorization_code&client_id=x${at}`,
      ],
    ],
    [
      'token requests with unknown codes',
      'auth',
      at => [
        { method: 'POST', path: '/oauth2/token' },
        form,
        `grant_type=authorization_code&client_id=sallyport-app&code=x${at}`,
      ],
    ],
    [
      'refresh requests',
      'auth',
      at => [
        { method: 'POST', path: '/oauth2/token' },
        form,
        `grant_type=refresh_token&client_id=sallyport-app&refresh_token=x${at}`,
      ],
    ],
    ['failed logins', 'auth', at => [{ method: 'POST', path: '/login' }, form, `username=x${at}&password=x`]],
    ['session API requests without a session', 'app', () => [{ method: 'GET', path: '/api/patient' }]],
  ]
  for (const [kind, name, send] of floods)
    it(`makes one record of ${kind}, and a count`, async () => {
      const before = await findRecords(stack.store, { limit: 1000 })
      const counted = () => countRecords(stack.store, {})
      const { allowed, refused } = await counted()
      const requests = 8
      for (let at = 0; at < requests; at++) {
        const [route, headers = {}, body] = send(at)
        await ask(name, route, { host: 'localhost', ...headers }, body)
      }
      assert.equal((await findRecords(stack.store, { limit: 1000 })).length, before.length + 1)
      await stack.audit.flush()
      assert.equal((await findRecords(stack.store, { limit: 1000 })).length, before.length + 2)
      const now = await counted()
      assert.equal(now.allowed + now.refused, allowed + refused + requests)
    })
})
