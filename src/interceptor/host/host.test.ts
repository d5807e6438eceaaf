import assert from 'node:assert/strict'
import { createServer, request as httpRequest } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, beforeEach, describe, it } from 'node:test'
import { expressInterceptor, getAuthorization } from '../index.ts'
import { auth, leakyHosts, makeCondition, NOT_WITHIN, TestHost } from '../testing/test-host.ts'
import { authUrl, fhirBaseUrl } from '../testing/test-issuer.ts'

/** `fetch` cannot set the headers of a preflight. */
function fetchStatus(
  url: string,
  method: string,
  headers: Record<string, string>,
): Promise<number | undefined> {
  return new Promise(resolve => {
    httpRequest(`${url}/fhir/Patient`, { method, headers }, response =>
      resolve(response.resume().statusCode),
    ).end()
  })
}

for (const [name, start] of Object.entries(leakyHosts))
  describe(`${name}Interceptor`, () => {
    const host = new TestHost(start)
    before(() => host.start())
    after(() => host.close())
    beforeEach(() => {
      host.requests = 0
    })

    it('requires a token first', async () => {
      host.respondWith(makeCondition('1'))
      for (const headers of [{}, { authorization: 'Basic YTpi' }]) {
        const response = await fetch(`${host.running.url}/fhir/Condition/1`, { headers })
        assert.equal(response.status, 401)
        assert.equal(response.headers.get('www-authenticate'), 'Bearer')
      }
      const token = auth.token({ scope: 'patient/*.rs' })
      assert.equal((await fetch(`${host.running.url}/fhir/Condition/1?access_token=${token}`)).status, 401)
      assert.equal(host.requests, 0)
    })

    it('refuses two Authorization headers', async () => {
      host.respondWith(makeCondition('1'))
      const status = await new Promise(resolve => {
        const headers = ['host', 'localhost', 'authorization', auth.bearer(), 'authorization', auth.bearer()]
        httpRequest(`${host.running.url}/fhir/Condition/1`, { headers }, response =>
          resolve(response.resume().statusCode),
        ).end()
      })
      assert.deepEqual([status, host.requests], [401, 0])
    })

    it('leaves metadata and preflights to the host', async () => {
      host.respondWith({ resourceType: 'CapabilityStatement' })
      assert.equal((await fetch(`${host.running.url}/fhir/metadata`)).status, 200)
      const headers = { origin: 'http://a.example', 'access-control-request-method': 'GET' }
      assert.equal(await fetchStatus(host.running.url, 'OPTIONS', headers), 204)
      assert.equal((await fetch(`${host.running.url}/fhir/Patient`, { method: 'OPTIONS' })).status, 401)
      // An incomplete preflight is a request without a token.
      const { origin, ...method } = headers
      for (const [verb, part] of [
        ['OPTIONS', { origin }],
        ['OPTIONS', method],
        ['GET', headers],
        ['GET', method],
      ] as const)
        assert.equal(await fetchStatus(host.running.url, verb, part), 401)
    })

    it('sends only the CORS headers of the host to a preflight, which has no token (LIBRARY-8)', async () => {
      const method = 'OPTIONS'
      const headers = { origin: 'http://a.example', 'access-control-request-method': 'GET' }
      for (const status of [200, 404]) {
        host.respondWith(makeCondition('2'), status, {
          'access-control-allow-origin': '*',
          'last-modified': 'Mon, 16 Nov 2026 00:00:00 GMT',
        })
        const response = await fetch(`${host.running.url}/fhir/Condition/1`, { method, headers })
        assert.deepEqual([response.status, await response.text()], [204, ''])
        assert.equal(response.headers.get('access-control-allow-origin'), '*')
        for (const name of ['etag', 'last-modified', 'content-type'])
          assert.equal(response.headers.get(name), null)
      }
    })

    it('refuses paths that it cannot read (LIBRARY-1)', async () => {
      host.respondWith(makeCondition('1'))
      for (const path of [
        '/%43ondition/1',
        '/Condition//1',
        '/Condition/1;x',
        '/Condition/1/',
        '/condition/1',
        '/x/y/z',
      ])
        assert.match(String((await host.send(`GET ${path}`, 'system/*.cruds')).status), /^40[04]$/, path)
      assert.equal(host.requests, 0)
    })

    it('refuses URLs that are not below the base (LIBRARY-1)', async () => {
      host.respondWith(makeCondition('1'))
      const elsewhere = await host.run({ basePath: '/abcd' })
      const { status, why } = await host.send('GET /Condition/1', undefined, undefined, elsewhere)
      assert.deepEqual([status, why], [400, 'Cannot read path: it is not below the FHIR base /abcd.'])
      assert.equal(host.requests, 0)
    })

    it('leaves the access filters to a host that applies them (LIBRARY-5)', async () => {
      const applying = await host.run({ appliesAccess: true })
      let received: unknown
      host.handler = (request, response) => {
        const smart = getAuthorization(request)
        received = [
          smart?.grant.patient,
          smart?.interaction.kind,
          smart?.decision.access.filterFor('Condition', 's'),
        ]
        response.end('{}')
      }
      assert.equal((await host.send('GET /Condition', undefined, undefined, applying)).status, 200)
      assert.deepEqual(received, ['1', 'search-type', [{ patient: '1' }]])
      assert.match(
        (await host.send('GET /Condition', 'patient/Patient.rs', undefined, applying)).why,
        /^Insufficient scope/,
      )
      assert.equal(
        (await host.send('POST /Condition', undefined, makeCondition('2'), applying)).why,
        NOT_WITHIN,
      )
    })

    it('refuses after an internal error', async () => {
      const errors: unknown[] = []
      const broken = await host.run({
        onError: error => errors.push(error),
        stored: () => Promise.reject(new Error('store unreachable')),
      })
      host.respondWith('')
      assert.equal((await host.send('DELETE /Condition/own', undefined, undefined, broken)).status, 500)
      assert.deepEqual([errors.length, host.requests], [1, 0])
    })
  })

describe('fastifyInterceptor', () => {
  assert(leakyHosts.fastify)
  const host = new TestHost(leakyHosts.fastify)
  before(() => host.start())
  after(() => host.close())

  it('checks the token before the body is read', async () => {
    const write = { method: 'POST', headers: { 'content-type': 'application/fhir+json' }, body: '{' }
    const url = `${host.running.url}/fhir/Condition`
    assert.equal((await fetch(url, write)).status, 401)
    const headers = { ...write.headers, authorization: auth.bearer({ scope: 'patient/*.c' }) }
    assert.equal((await fetch(url, { ...write, headers })).status, 400)
  })

  it('checks whether a scope permits the request before the body is read (BUNDLE-1)', async () => {
    const headers = {
      'content-type': 'application/fhir+json',
      authorization: auth.bearer({ scope: 'openid' }),
    }
    for (const path of ['', '/Condition']) {
      const reply = await fetch(`${host.running.url}/fhir${path}`, { method: 'POST', headers, body: '{' })
      assert.equal(reply.status, 403, path)
    }
  })
})

describe('expressInterceptor, without express', () => {
  it('guards a plain Node server (LIBRARY-1)', async () => {
    const options = { authUrl, fhirBaseUrl, fetch: auth.fetch, clock: auth.clock }
    const interceptor = expressInterceptor(options)
    const server = createServer((request, response) =>
      interceptor(request, response, () => response.end(JSON.stringify(makeCondition('1')))),
    )
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/fhir/Condition/1`
    assert.equal((await fetch(url)).status, 401)
    assert.equal((await fetch(url, { headers: { authorization: auth.bearer() } })).status, 200)
    interceptor.close()
    server.close()
  })
})
