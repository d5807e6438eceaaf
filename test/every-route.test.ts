import assert from 'node:assert/strict'
import { once } from 'node:events'
import { Agent, type IncomingMessage, METHODS, type OutgoingHttpHeaders, request } from 'node:http'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { after, before, describe, it } from 'node:test'
import { countRecords, findRecords } from '../src/audit/index.ts'
import { listRoutes } from '../src/web/http/index.ts'
import { type Stack, startStack } from './support/stack.ts'
import { IS_THOROUGH } from './support/thorough.ts'

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
  const routes = listRoutes(stack[name]).map(({ method, path }) => ({
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

describe('a request with an unknown host name, on loopback', () => {
  for (const name of SERVERS)
    for (const host of ['evil.test', 'localhost.evil.test:9000', '0.0.0.0'])
      it(`is refused by every route of the ${name} server: ${host} (HTTP-6)`, async () => {
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
    it(`is distinguished from loopback names and configured names by the ${name} server`, async () => {
      for (const host of ['localhost:1', '127.0.0.1', '[::1]:9000', 'app.localhost', 'ehr.test']) {
        const { reply } = await ask(name, { method: 'GET', path: '/healthz' }, { host })
        assert.equal(reply.statusCode, 200, host)
      }
    })
})

describe('a method that a path does not have', () => {
  /** Methods that a client cannot send without more: CONNECT has no path, and some methods need a body. */
  const methods = METHODS.filter(method => method !== 'CONNECT')
  const token = { authorization: 'Bearer none' }
  const TYPES = [undefined, 'application/xml', 'application/json']
  /** Each path gets every method and every type; a thorough run sends every method with every type. */
  const chooseTypes = (at: number) => (IS_THOROUGH ? TYPES : [TYPES[at % TYPES.length]])

  for (const name of SERVERS)
    it(`is a 405 with Allow at every route of the ${name} server, whatever the body is (ERROR-6)`, async () => {
      const routes = routesFor(name).filter(({ path }) => path !== '/nowhere' && !path.startsWith('/fhir'))
      const paths = Map.groupBy(routes, ({ path }) => path)
      for (const [path, served] of paths) {
        const allowed = new Set(served.map(({ method }) => method))
        const refused = methods.filter(it => !allowed.has(it) && it !== 'HEAD' && it !== 'OPTIONS')
        for (const [at, method] of refused.entries())
          for (const type of chooseTypes(at)) {
            const headers = { host: 'localhost', ...(type !== undefined && { 'content-type': type }) }
            const { reply } = await ask(name, { method, path }, headers, type === undefined ? '' : '<a')
            assert.equal(reply.statusCode, 405, `${method} ${path} ${type}`)
            for (const one of allowed) assert.ok(reply.headers.allow?.split(', ').includes(one), path)
          }
      }
    })

  const fhir: Readonly<Record<string, string>> = {
    '/fhir': 'GET, HEAD, POST',
    '/fhir/': 'GET, HEAD, POST',
    '/fhir/metadata': 'GET, HEAD',
    '/fhir/.well-known/smart-configuration': 'GET, HEAD',
    '/fhir/Patient': 'GET, HEAD, POST, PUT, PATCH, DELETE',
    '/fhir/Patient/_search': 'POST',
    '/fhir/Patient/1': 'GET, HEAD, PUT, PATCH, DELETE',
    '/fhir/Patient/1/_history': 'GET, HEAD',
    '/fhir/Patient/1/_history/2': 'GET, HEAD',
    '/fhir/Patient/1/Condition': 'GET, HEAD',
    '/fhir/Patient/$validate': 'POST',
    '/fhir/Patient/1/$validate': 'GET, HEAD, POST',
    '/fhir/Patient/1/$everything': 'GET, HEAD, POST',
  }
  const FHIR_METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])
  for (const [path, allow] of Object.entries(fhir))
    it(`is a 405 with Allow: ${allow} at ${path}`, async () => {
      for (const method of methods.filter(it => !FHIR_METHODS.has(it))) {
        const { reply, body } = await ask('fhir', { method, path }, { host: 'localhost', ...token })
        assert.deepEqual([reply.statusCode, reply.headers.allow], [405, allow], method)
        assert.match(body, /OperationOutcome/)
      }
    })

  it('is a 404 at an unknown path', async () => {
    for (const [name, path] of [
      ['auth', '/nowhere'],
      ['fhir', '/fhir/Nothing'],
      ['app', '/nowhere'],
    ] as const)
      for (const method of ['QUERY', 'TRACE', 'PROPFIND']) {
        const { reply } = await ask(name, { method, path }, { host: 'localhost' })
        assert.equal(reply.statusCode, 404, `${method} ${path}`)
      }
  })

  const raw = async (name: ServerName, line: string) => {
    const socket = connect(stack.settings[`${name}Port`], '127.0.0.1')
    socket.write(`${line} HTTP/1.1\r\nHost: localhost\r\n\r\n`)
    return text(socket)
  }
  for (const name of SERVERS)
    it(`is a 501 if the ${name} server does not know it, and opens no tunnel (ERROR-6)`, async () => {
      assert.match(await raw(name, 'BREW /healthz'), /^HTTP\/1\.1 501 /)
      assert.match(await raw(name, 'CONNECT example.org:443'), /^HTTP\/1\.1 405 .*^Allow: \r$/ms)
      assert.match(await raw(name, '\x16\x03\x01\x02'), /^HTTP\/1\.1 400 /)
    })

  for (const name of SERVERS)
    it(`is not read if the request line is too long: the ${name} server sends 431 with the limit`, async () => {
      const answer = await raw(name, `GET /healthz?${'x'.repeat(16 * 1024)}`)
      assert.match(answer, /^HTTP\/1\.1 431 .*larger than 16384 bytes/s)
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
    [
      'unknown activation links',
      'auth',
      at => [{ method: 'POST', path: '/login/activate' }, form, `link=${`${at}`.padEnd(43, 'x')}`],
    ],
    ['session API requests without a session', 'app', () => [{ method: 'GET', path: '/api/patient' }]],
  ]
  for (const [kind, name, send] of floods)
    it(`creates one record of ${kind}, and a count (AUDIT-12)`, async () => {
      const before = await findRecords(stack.store, { limit: 1000 })
      const counted = async () => {
        const { allowed, refused } = (await countRecords(stack.store, {})) ?? assert.fail('too many')
        return allowed + refused
      }
      const earlier = await counted()
      const requests = 8
      for (let at = 0; at < requests; at++) {
        const [route, headers = {}, body] = send(at)
        await ask(name, route, { host: 'localhost', ...headers }, body)
      }
      assert.equal((await findRecords(stack.store, { limit: 1000 })).length, before.length + 1)
      await stack.audit.flush()
      assert.equal((await findRecords(stack.store, { limit: 1000 })).length, before.length + 2)
      assert.equal(await counted(), earlier + requests)
    })
})
