import assert from 'node:assert/strict'
import { afterEach, describe, it } from 'node:test'
import type { FastifyInstance, InjectOptions } from 'fastify'
import { createLogger, createServer, html, page, type ServerOptions } from './index.ts'

const servers: FastifyInstance[] = []
afterEach(async () => {
  await Promise.all(servers.splice(0).map(server => server.close()))
})

interface Made {
  readonly app: FastifyInstance
  readonly lines: () => readonly Record<string, unknown>[]
  readonly log: () => string
}

/** A server with one route of each kind, and its log. */
async function make(options: Partial<ServerOptions> = {}): Promise<Made> {
  let log = ''
  const keep = (text: string): void => {
    log += text
  }
  const logger = createLogger({ level: 'debug', destination: { write: keep } })
  const app = await createServer({ name: 'auth', url: 'http://localhost:9000', logger, ...options })
  servers.push(app)
  app.get('/page/:id', async (_request, reply) =>
    reply.sendPage(page({ title: 'Hello', bar: { kind: 'portal' } }, html`<h1>Hello</h1>`)),
  )
  app.post('/form', async request => request.body)
  app.get('/oauth2/things', async () => ({ ok: true }))
  app.get('/boom', async () => {
    throw new Error('Broken by access_token=abc')
  })
  return {
    app,
    log: () => log,
    lines: () =>
      log
        .split('\n')
        .filter(line => line !== '')
        .map(line => JSON.parse(line)),
  }
}

const FORM = { 'content-type': 'application/x-www-form-urlencoded' }

describe('createServer: request ids', () => {
  it('puts a fresh id on every response and on its log line', async () => {
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

  it('is on answers to addresses that cannot be read', async () => {
    const { app } = await make()
    const response = await app.inject('/%zz')
    assert.equal(response.statusCode, 400)
    assert.match(String(response.headers['x-request-id']), /^.{14}$/)
    assert.match(String(response.headers['content-security-policy']), /style-src 'self'/)
  })
})

describe('createServer: log', () => {
  it('has one line a request, without query, headers or body', async () => {
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

  it('keeps probes and assets to the debug level', async () => {
    const { app, lines } = await make()
    await app.inject('/healthz')
    await app.inject('/readyz')
    assert.deepEqual(
      lines().map(line => line.level),
      ['debug', 'debug'],
    )
  })

  it('says what broke, and takes secrets out of it', async () => {
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

describe('createServer: headers', () => {
  it('gives a page the strict policy', async () => {
    const { app } = await make()
    const { headers } = await app.inject('/page/1')
    assert.equal(
      headers['content-security-policy'],
      "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    )
    assert.equal(headers['referrer-policy'], 'no-referrer')
    assert.equal(headers['x-content-type-options'], 'nosniff')
    assert.equal(headers['cache-control'], 'no-store')
    assert.equal(headers['strict-transport-security'], undefined)
  })

  it('gives what is no page a policy that allows nothing', async () => {
    const { app } = await make()
    const { headers } = await app.inject('/oauth2/things')
    assert.equal(
      headers['content-security-policy'],
      "default-src 'none'; frame-ancestors 'none'; base-uri 'none'",
    )
  })

  it('keeps what a handler set', async () => {
    const { app } = await make()
    app.get('/kept', async (_request, reply) =>
      reply.header('cache-control', 'public, max-age=60').header('referrer-policy', 'origin').send({}),
    )
    const { headers } = await app.inject('/kept')
    assert.equal(headers['cache-control'], 'public, max-age=60')
    assert.equal(headers['referrer-policy'], 'origin')
  })

  it('asks for https once it is served by https', async () => {
    const { app } = await make({ url: 'https://auth.example.org' })
    const { headers } = await app.inject('/page/1')
    assert.equal(headers['strict-transport-security'], 'max-age=31536000')
  })
})

describe('createServer: cross-site forms (contract 4)', () => {
  const cases: readonly (readonly [headers: Record<string, string>, status: number])[] = [
    [{}, 200],
    [{ 'sec-fetch-site': 'same-origin' }, 200],
    [{ 'sec-fetch-site': 'none' }, 200],
    [{ 'sec-fetch-site': 'same-site' }, 403],
    [{ 'sec-fetch-site': 'cross-site' }, 403],
    [{ 'sec-fetch-site': 'anything' }, 403],
    [{ 'sec-fetch-site': 'same-origin', origin: 'http://evil.example' }, 200],
    [{ 'sec-fetch-site': 'cross-site', origin: 'http://localhost:9000' }, 403],
    [{ origin: 'http://localhost:9000' }, 200],
    [{ origin: 'http://127.0.0.1:9000', host: '127.0.0.1:9000' }, 200],
    [{ origin: 'http://127.0.0.1:9000', host: 'localhost:9000' }, 403],
    [{ origin: 'http://localhost:8081' }, 403],
    [{ origin: 'https://localhost:9000' }, 403],
    [{ origin: 'null' }, 403],
    [{ origin: '' }, 403],
  ]
  for (const [headers, status] of cases) {
    it(`answers ${status} to ${JSON.stringify(headers)}`, async () => {
      const { app } = await make()
      const response = await app.inject({
        method: 'POST',
        url: '/form',
        headers: { ...FORM, ...headers },
        payload: 'a=1',
      })
      assert.equal(response.statusCode, status)
    })
  }

  it('refuses before the body is read', async () => {
    const { app } = await make()
    const response = await app.inject({
      method: 'POST',
      url: '/form',
      headers: { 'content-type': 'application/json', 'sec-fetch-site': 'cross-site' },
      payload: 'not json',
    })
    assert.equal(response.statusCode, 403)
  })

  it('lets another site link to a page', async () => {
    const { app } = await make()
    const response = await app.inject({ url: '/page/1', headers: { 'sec-fetch-site': 'cross-site' } })
    assert.equal(response.statusCode, 200)
  })

  it('exempts the addresses that it is told', async () => {
    const { app } = await make({ acceptsCrossSite: path => path === '/form' })
    const response = await app.inject({
      method: 'POST',
      url: '/form?x=1',
      headers: { ...FORM, 'sec-fetch-site': 'cross-site' },
      payload: 'a=1',
    })
    assert.equal(response.statusCode, 200)
  })
})

describe('createServer: errors', () => {
  const requests: readonly (readonly [what: string, request: InjectOptions, status: number, text: RegExp])[] =
    [
      ['an unknown address', { url: '/nowhere' }, 404, /no such page/],
      [
        'a known address with another method',
        { method: 'DELETE', url: '/page/1' },
        405,
        /cannot be used that way/,
      ],
      [
        'JSON that is none',
        { method: 'POST', url: '/form', headers: { 'content-type': 'application/json' }, payload: '{"a":' },
        400,
        /The body is not valid JSON/,
      ],
      [
        'an empty JSON body',
        { method: 'POST', url: '/form', headers: { 'content-type': 'application/json' }, payload: '' },
        400,
        /The body is empty/,
      ],
      [
        'a prototype in JSON',
        {
          method: 'POST',
          url: '/form',
          headers: { 'content-type': 'application/json' },
          payload: '{"__proto__":{"admin":true}}',
        },
        400,
        /could not be read/,
      ],
      [
        'a content type that is not read',
        { method: 'POST', url: '/form', headers: { 'content-type': 'text/plain' }, payload: 'a=1' },
        415,
        /kind of content is not accepted/,
      ],
      [
        'a body over the limit',
        { method: 'POST', url: '/form', headers: FORM, payload: `a=${'x'.repeat(70_000)}` },
        413,
        /too large/,
      ],
      ['a fault of ours', { url: '/boom' }, 500, /Something went wrong here/],
    ]
  for (const [what, request, status, text] of requests) {
    it(`answers ${what} with ${status} and a page with the reference`, async () => {
      const { app } = await make()
      const response = await app.inject(request)
      assert.equal(response.statusCode, status)
      assert.match(String(response.headers['content-type']), /^text\/html/)
      assert.match(response.body, text)
      assert.ok(response.body.includes(`<code>${response.headers['x-request-id']}</code>`))
      assert.doesNotMatch(response.body, /Broken|stack|node_modules/)
    })
  }

  it('names the methods that an address has', async () => {
    const { app } = await make()
    const response = await app.inject({ method: 'PUT', url: '/page/1?x=1' })
    assert.equal(response.headers.allow, 'GET, HEAD')
  })

  const styles = [
    ['fhir', 'application/fhir+json; charset=utf-8'],
    ['api', 'application/json; charset=utf-8'],
  ] as const
  for (const [style, type] of styles) {
    it(`answers with an OperationOutcome in the style ${style}`, async () => {
      const { app } = await make({ errorStyle: () => style })
      const response = await app.inject('/nowhere')
      assert.equal(response.headers['content-type'], type)
      assert.deepEqual(response.json(), {
        resourceType: 'OperationOutcome',
        issue: [
          {
            severity: 'error',
            code: 'not-found',
            details: { text: 'The address may be mistyped, or the page may have moved.' },
          },
        ],
      })
    })
  }

  it('answers OAuth addresses with OAuth errors', async () => {
    const { app } = await make({ errorStyle: path => (path.startsWith('/oauth2/') ? 'oauth' : 'page') })
    const wrong = await app.inject({ method: 'POST', url: '/oauth2/things?x=1', headers: FORM, payload: '' })
    assert.equal(wrong.statusCode, 405)
    assert.equal(wrong.json().error, 'invalid_request')
    assert.match(String((await app.inject('/nowhere')).headers['content-type']), /^text\/html/)
  })

  it('asks to try again when what it needs is away, and calls the rest unexpected', async () => {
    let there = false
    const check = async (): Promise<void> => {
      if (!there) throw new Error('no connection')
    }
    const { app } = await make({ checks: [{ name: 'database', check }] })
    const away = await app.inject('/boom')
    assert.equal(away.statusCode, 503)
    assert.equal(away.headers['retry-after'], '2')
    there = true
    assert.equal((await app.inject('/boom')).statusCode, 500)
  })

  it('says which parameter is not valid', async () => {
    const { app } = await make({ errorStyle: () => 'api' })
    const schema = {
      querystring: { type: 'object', properties: { _count: { type: 'integer', maximum: 1000 } } },
    }
    app.get('/api/things', { schema }, async () => ({}))
    const response = await app.inject('/api/things?_count=secret')
    assert.equal(response.statusCode, 400)
    assert.equal(response.json().issue[0].details.text, '_count must be integer.')
  })
})
