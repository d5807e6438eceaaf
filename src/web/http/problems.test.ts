import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import type { FastifyInstance, InjectOptions } from 'fastify'
import { FORM, useServers } from './testing/make-server.ts'

const make = useServers()

describe('error responses', () => {
  let app: FastifyInstance
  before(async () => {
    app = (await make()).app
  })
  const requests: readonly (readonly [
    cause: string,
    request: InjectOptions,
    status: number,
    text: RegExp,
  ])[] = [
    ['an unknown path', { url: '/nowhere' }, 404, /Page not found/],
    [
      'a method that the path does not have',
      { method: 'DELETE', url: '/page/1' },
      405,
      /request is not supported/,
    ],
    [
      'invalid JSON',
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
      /request is not valid/,
    ],
    [
      'an unsupported content type',
      { method: 'POST', url: '/form', headers: { 'content-type': 'text/plain' }, payload: 'a=1' },
      415,
      /content type is not supported/,
    ],
    [
      'a body over the limit',
      { method: 'POST', url: '/form', headers: FORM, payload: `a=${'x'.repeat(70_000)}` },
      413,
      /too large/,
    ],
    ['an unexpected error', { url: '/boom' }, 500, /Something went wrong/],
  ]
  for (const [cause, request, status, text] of requests) {
    it(`are a page with status ${status} and the reference for ${cause}`, async () => {
      const response = await app.inject(request)
      assert.equal(response.statusCode, status)
      assert.match(String(response.headers['content-type']), /^text\/html/)
      assert.match(response.body, text)
      assert.ok(response.body.includes(`<code>${response.headers['x-request-id']}</code>`))
      assert.doesNotMatch(response.body, /Broken|stack|node_modules/)
    })
  }

  it('list the methods that a path has', async () => {
    const response = await app.inject({ method: 'PUT', url: '/page/1?x=1' })
    assert.equal(response.headers.allow, 'GET, HEAD')
  })

  const styles = [
    ['fhir', 'application/fhir+json; charset=utf-8'],
    ['api', 'application/json; charset=utf-8'],
  ] as const
  for (const [style, type] of styles) {
    it(`are OperationOutcomes in the style ${style} (ERROR-1)`, async () => {
      const { app } = await make({ errorStyle: () => style })
      const response = await app.inject('/nowhere')
      assert.equal(response.headers['content-type'], type)
      assert.deepEqual(response.json(), {
        resourceType: 'OperationOutcome',
        issue: [
          {
            severity: 'error',
            code: 'not-found',
            details: {
              text: 'There is nothing at this address. Check it for typing errors.',
            },
            diagnostics: 'There is nothing at this address. Check it for typing errors.',
          },
        ],
      })
    })
  }

  it('are OAuth errors on OAuth paths', async () => {
    const { app } = await make({ errorStyle: path => (path.startsWith('/oauth2/') ? 'oauth' : 'page') })
    const wrong = await app.inject({ method: 'POST', url: '/oauth2/things?x=1', headers: FORM, payload: '' })
    assert.equal(wrong.statusCode, 405)
    assert.equal(wrong.json().error, 'invalid_request')
    assert.match(String((await app.inject('/nowhere')).headers['content-type']), /^text\/html/)
  })

  it('are 503 for an unavailable database, and 500 for any other error, whatever the checks report', async () => {
    let there = false
    const check = async (): Promise<void> => {
      if (!there) throw new Error('no connection')
    }
    const { app } = await make({ checks: [{ name: 'database', check }] })
    for (const ready of [false, true]) {
      there = ready
      const full = await app.inject('/full')
      assert.equal(full.statusCode, 503)
      assert.equal(full.headers['retry-after'], '2')
      assert.equal((await app.inject('/boom')).statusCode, 500)
    }
  })

  it('name the invalid parameter', async () => {
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
