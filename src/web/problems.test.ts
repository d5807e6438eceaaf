import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import type { FastifyInstance, InjectOptions } from 'fastify'
import { FORM, useServers } from './testing/make-server.ts'

const make = useServers()

describe('what goes wrong', () => {
  let app: FastifyInstance
  before(async () => {
    app = (await make()).app
  })
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
      const response = await app.inject(request)
      assert.equal(response.statusCode, status)
      assert.match(String(response.headers['content-type']), /^text\/html/)
      assert.match(response.body, text)
      assert.ok(response.body.includes(`<code>${response.headers['x-request-id']}</code>`))
      assert.doesNotMatch(response.body, /Broken|stack|node_modules/)
    })
  }

  it('names the methods that an address has', async () => {
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
            diagnostics: 'The address may be mistyped, or the page may have moved.',
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

  it('asks to try again by the error alone, whatever its checks say, and calls the rest unexpected', async () => {
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
