import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import express from 'express'
import fastify from 'fastify'
import { expressInterceptor, fastifyInterceptor } from '../index.ts'
import { auth, leakyHosts, TestHost } from '../testing/test-host.ts'
import { authUrl, fhirBaseUrl } from '../testing/test-issuer.ts'

const OPTIONS = { authUrl, fhirBaseUrl, fetch: auth.fetch, clock: auth.clock }

async function post(url: string, body: string, more: Readonly<Record<string, string>> = {}) {
  const headers = {
    authorization: auth.bearer({ scope: 'patient/*.cruds' }),
    'content-type': 'application/fhir+json',
    ...more,
  }
  const response = await fetch(url, { method: 'POST', headers, body })
  return { status: response.status, type: response.headers.get('content-type'), text: await response.text() }
}

for (const [name, start] of Object.entries(leakyHosts))
  describe(`a request that ${name} cannot read`, () => {
    const host = new TestHost(start)
    before(() => host.start())
    after(() => host.close())

    it('gets an OperationOutcome, after the token is checked (ERROR-1)', async () => {
      const url = `${host.running.url}/fhir/Condition`
      const malformed = await post(url, '{"resourceType":')
      assert.deepEqual(
        [malformed.status, malformed.type],
        [400, 'application/fhir+json; charset=utf-8'],
        malformed.text,
      )
      const [issue] = JSON.parse(malformed.text).issue
      assert.deepEqual([issue.severity, issue.code], ['error', 'structure'])
      assert.match(issue.diagnostics, /^Cannot read request: .*JSON/)
      const large = await post(url, JSON.stringify({ text: 'x'.repeat(2_000_000) }))
      assert.deepEqual([large.status, JSON.parse(large.text).issue[0].code], [413, 'too-long'])
      const anonymous = await post(url, '{', { authorization: '' })
      assert.deepEqual([anonymous.status, JSON.parse(anonymous.text).issue[0].code], [401, 'login'])
      assert.equal(host.requests, 0)
    })
  })

describe('fastifyInterceptor', () => {
  it('changes no error of other routes, of a handler, or of the host that has its own', async () => {
    const app = fastify()
    app.post('/other', async () => 'ok')
    app.register(async fhir => {
      await fhir.register(fastifyInterceptor({ ...OPTIONS, contexts: ['system'] }))
      fhir.get('/fhir/Patient/1', async () => {
        throw Object.assign(new Error('gone'), { statusCode: 410 })
      })
    })
    app.register(async fhir => {
      await fhir.register(
        fastifyInterceptor({
          ...OPTIONS,
          contexts: ['system'],
          basePath: '/own',
          smartConfiguration: 'host',
        }),
      )
      fhir.setErrorHandler((error, _request, reply) => reply.code(422).send({ own: (error as Error).name }))
      fhir.post('/own/Condition', async () => 'ok')
    })
    const send = async (method: 'GET' | 'POST', url: string) => {
      const headers = {
        authorization: auth.bearer({ scope: 'system/*.cruds' }),
        'content-type': 'application/json',
      }
      const { statusCode, json } = await app.inject({
        method,
        url,
        headers,
        ...(method === 'POST' && { body: '{' }),
      })
      return [statusCode, Object.keys(json())]
    }
    assert.deepEqual(await send('POST', '/other'), [400, ['statusCode', 'code', 'error', 'message']])
    assert.deepEqual(await send('POST', '/own/Condition'), [422, ['own']])
    assert.deepEqual(await send('GET', '/fhir/Patient/1'), [410, ['statusCode', 'error', 'message']])
    await app.close()
  })
})

describe('expressInterceptor', () => {
  it('leaves errors of the server to the host', async () => {
    const app = express()
    const interceptor = expressInterceptor(OPTIONS)
    app.use('/fhir', () => {
      throw new Error('broken')
    })
    app.use('/fhir', interceptor, interceptor.handleError)
    app.use((error: Error, _request: unknown, response: express.Response, _next: unknown) => {
      response.status(500).send(error.message)
    })
    const server = app.listen(0, '127.0.0.1')
    await new Promise(resolve => server.once('listening', resolve))
    const address = server.address()
    const port = typeof address === 'object' ? address?.port : undefined
    const { status, text } = await post(`http://127.0.0.1:${port}/fhir/Condition`, '{}')
    assert.deepEqual([status, text], [500, 'broken'])
    interceptor.close()
    server.closeAllConnections()
    await new Promise(resolve => server.close(resolve))
  })

  it('tells the host once that a body parser is missing (LIBRARY-9)', async t => {
    const errors: string[] = []
    const app = express()
    const interceptor = expressInterceptor({ ...OPTIONS, onError: error => errors.push(String(error)) })
    app.use('/fhir', express.json(), interceptor)
    const server = app.listen(0, '127.0.0.1')
    await new Promise(resolve => server.once('listening', resolve))
    t.after(() => {
      interceptor.close()
      server.closeAllConnections()
      server.close()
    })
    const address = server.address()
    const port = typeof address === 'object' ? address?.port : undefined
    const url = `http://127.0.0.1:${port}/fhir/Condition`
    for (const type of ['text/nonsense', 'application/fhir+json', 'application/fhir+json'])
      assert.equal((await post(url, '{"resourceType":"Condition"}', { 'content-type': type })).status, 403)
    await post(url, '{}', { 'content-type': 'application/json' })
    assert.deepEqual(errors, [
      "Error: POST /fhir/Condition was refused, because its body was not read. Mount express.json({ type: ['application/fhir+json', 'application/json'] }) before the interceptor.",
    ])
  })
})
