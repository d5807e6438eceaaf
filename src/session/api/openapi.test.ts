import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createSchemaCheck } from '../../../test/support/openapi.ts'
import { API_PATHS, useSessionApi } from '../../../test/support/session-api.ts'

describe('GET /api/openapi.json', () => {
  const api = useSessionApi()

  it('is a public OpenAPI 3.1 document with every endpoint', async () => {
    const response = await api.app.inject({ method: 'GET', url: '/api/openapi.json' })
    assert.equal(response.statusCode, 200)
    const document = response.json()
    assert.match(document.openapi, /^3\.1\.\d$/)
    assert.deepEqual(Object.keys(document.paths), [...API_PATHS])
  })

  it('matches real responses and errors, and its parameters work as documented (API-13)', async () => {
    const document = (await api.app.inject({ method: 'GET', url: '/api/openapi.json' })).json()
    const checkSchema = createSchemaCheck(document)
    for (const path of API_PATHS) {
      const { responses, parameters } = document.paths[path].get
      await checkSchema(responses[200], await api.browser.get(path))
      await checkSchema(responses[401], await api.app.inject({ method: 'GET', url: path }))
      await checkSchema(responses[400], await api.browser.get(`${path}?nothing=1`))
      await checkSchema(responses[409], await api.browser.get(path, { 'x-session-id': 'x' }))
      for (const { name, schema } of parameters.filter((one: { in?: string }) => one.in === 'query')) {
        const value = schema.default ?? '85354-9'
        await checkSchema(responses[200], await api.browser.get(`${path}?${name}=${value}`))
      }
    }
  })

  it('has an example of a session, like a real one (API-13)', async () => {
    const document = (await api.app.inject({ method: 'GET', url: '/api/openapi.json' })).json()
    const { example } = document.paths['/api/session'].get.responses[200].content['application/json']
    assert.deepEqual(Object.keys(example), Object.keys((await api.browser.get('/api/session')).json()))
  })

  it('is rendered at /docs with a request and a response like real ones', async () => {
    const { body } = await api.app.inject({ method: 'GET', url: '/docs' })
    const [request = '', response = ''] = [...body.matchAll(/<pre[^>]*><code>([^<]*)</g)].map(
      ([, text]) => text,
    )
    assert.match(request, /fetch\(&#39;\/api\/session&#39;/)
    const shown = JSON.parse(response.replaceAll('&quot;', '"'))
    assert.deepEqual(Object.keys(shown), Object.keys((await api.browser.get('/api/session')).json()))
  })

  it('is rendered at /docs with every endpoint', async () => {
    const { paths } = (await api.app.inject({ method: 'GET', url: '/api/openapi.json' })).json()
    const { body } = await api.app.inject({ method: 'GET', url: '/docs' })
    for (const path of Object.keys(paths)) assert.ok(body.includes(`GET ${path}`), path)
    assert.ok(body.includes('<code>/s/&lt;sessionId&gt;</code>'))
    assert.equal(body.includes('`'), false)
    assert.ok(body.includes('one of active, recurrence, relapse, inactive, remission, resolved'))
  })

  it('is checked by schemas that can fail', async () => {
    const document = (await api.app.inject({ method: 'GET', url: '/api/openapi.json' })).json()
    const checkSchema = createSchemaCheck(document)
    await assert.rejects(
      checkSchema(document.paths['/api/session'].get.responses[200], await api.browser.get('/api/me')),
    )
  })
})
