import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { after, describe, it } from 'node:test'
import express from 'express'
import fastify from 'fastify'
import { expressInterceptor, fastifyInterceptor } from '../index.ts'
import { auth, leakyHosts, TestHost } from '../testing/test-host.ts'
import { authUrl, fhirBaseUrl } from '../testing/test-issuer.ts'

const PATH = '/fhir/.well-known/smart-configuration'
const DOCUMENT = { issuer: authUrl, token_endpoint: `${authUrl}/oauth2/token`, capabilities: ['launch-ehr'] }

/** An auth server that returns a SMART configuration or fails, and counts the requests for it. */
class ConfigurationServer {
  requests = 0
  init: RequestInit | undefined
  now = 0
  readonly errors: unknown[] = []
  answer: () => Response = () => Response.json(DOCUMENT)
  readonly options = {
    clock: () => this.now,
    onError: (error: unknown) => this.errors.push(error),
    fetch: async (url: string, init: RequestInit) => {
      if (url !== `${authUrl}/.well-known/smart-configuration`) return auth.fetch(url)
      this.requests += 1
      this.init = init
      return this.answer()
    },
  }
}

for (const [name, start] of Object.entries(leakyHosts))
  describe(`the SMART configuration below ${name}Interceptor`, () => {
    const host = new TestHost(start)
    after(() => host.close())

    it('is the auth server’s, public, readable by other origins, and never the host’s (LIBRARY-6)', async () => {
      host.respondWith({ issuer: 'of the host' })
      const { url } = await host.run(new ConfigurationServer().options)
      const response = await fetch(`${url}${PATH}`)
      assert.equal(response.status, 200)
      assert.match(response.headers.get('content-type') ?? '', /^application\/json/)
      assert.equal(response.headers.get('access-control-allow-origin'), '*')
      assert.deepEqual(await response.json(), DOCUMENT)
      const head = await fetch(`${url}${PATH}`, { method: 'HEAD' })
      assert.deepEqual([head.status, await head.text()], [200, ''])
      assert.equal((await fetch(`${url}${PATH}`, { method: 'POST' })).status, 401)
      assert.equal(host.requests, 0)
    })

    it('is fetched as JSON, without following redirects', async () => {
      const server = new ConfigurationServer()
      const { url } = await host.run(server.options)
      await fetch(`${url}${PATH}`)
      assert.deepEqual(
        [server.init?.redirect, server.init?.headers],
        ['error', { accept: 'application/json' }],
      )
    })

    it('is fetched once in five minutes, and stays in use while the auth server is unreachable', async () => {
      const server = new ConfigurationServer()
      const { url } = await host.run(server.options)
      const statuses = await Promise.all([1, 2, 3].map(async () => (await fetch(`${url}${PATH}`)).status))
      assert.deepEqual([statuses, server.requests], [[200, 200, 200], 1])
      server.now += 300_000
      server.answer = () => Response.error()
      assert.deepEqual([(await fetch(`${url}${PATH}`)).status, server.requests], [200, 2])
      assert.deepEqual([(await fetch(`${url}${PATH}`)).status, server.requests], [200, 2])
    })

    it('is a 503 until the auth server is reachable, with a limited number of attempts', async () => {
      const server = new ConfigurationServer()
      server.answer = () => {
        throw new TypeError('fetch failed')
      }
      const { url } = await host.run(server.options)
      for (const requests of [1, 1]) {
        const response = await fetch(`${url}${PATH}`)
        assert.deepEqual(
          [response.status, response.headers.get('retry-after'), server.requests],
          [503, '2', requests],
        )
        assert.equal((await response.json()).issue[0].code, 'transient')
      }
      assert.equal(server.errors.length, 1)
      server.now += 2_000
      server.answer = () => Response.json(DOCUMENT)
      assert.equal((await fetch(`${url}${PATH}`)).status, 200)
    })

    it('is not served if it names another issuer, is not a document, or is an error', async () => {
      for (const answer of [
        () => Response.json({ ...DOCUMENT, issuer: 'http://other.example' }),
        () => Response.json({ issuer: authUrl }),
        () => Response.json(null),
        () => new Response('<html>'),
        () => Response.json(DOCUMENT, { status: 404 }),
      ]) {
        const server = new ConfigurationServer()
        server.answer = answer
        const { url } = await host.run(server.options)
        assert.deepEqual([(await fetch(`${url}${PATH}`)).status, server.errors.length], [503, 1])
      }
    })

    it('is the given document, without a fetch', async () => {
      const server = new ConfigurationServer()
      const smartConfiguration = { issuer: 'https://idp.example' }
      const trustedIssuers = [{ ...smartConfiguration, jwksUrl: 'https://idp.example/keys' }]
      for (const more of [{}, { authUrl: undefined, trustedIssuers }]) {
        const { url } = await host.run({ ...server.options, smartConfiguration, ...more })
        assert.deepEqual(await (await fetch(`${url}${PATH}`)).json(), smartConfiguration)
      }
      assert.equal(server.requests, 0)
    })

    it('is left to a host that serves it', async () => {
      host.respondWith({ issuer: 'of the host' })
      const server = new ConfigurationServer()
      const { url } = await host.run({ ...server.options, smartConfiguration: 'host' })
      assert.deepEqual(await (await fetch(`${url}${PATH}`)).json(), { issuer: 'of the host' })
      assert.equal(server.requests, 0)
    })
  })

describe('the SMART configuration of an express app with CORS rules', () => {
  it('keeps the rules', async () => {
    const { options } = new ConfigurationServer()
    const interceptor = expressInterceptor({ authUrl, fhirBaseUrl, ...options })
    const app = express()
    app.use('/fhir', (_request, response, next) => {
      response.setHeader('access-control-allow-origin', 'https://app.example')
      next()
    })
    app.use('/fhir', interceptor)
    const server = app.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const response = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}${PATH}`)
    interceptor.close()
    server.close()
    assert.deepEqual(await response.json(), DOCUMENT)
    assert.equal(response.headers.get('access-control-allow-origin'), 'https://app.example')
  })
})

describe('the SMART configuration of a fastify instance with a prefix', () => {
  it('is at the FHIR base, and keeps the host’s own CORS rules', async () => {
    const app = fastify()
    app.addHook('onRequest', async (_request, reply) => {
      reply.header('access-control-allow-origin', 'https://app.example')
    })
    const { options } = new ConfigurationServer()
    await app.register(
      async fhir => fhir.register(fastifyInterceptor({ authUrl, fhirBaseUrl, ...options })),
      { prefix: '/fhir' },
    )
    const response = await app.inject(PATH)
    assert.deepEqual([response.statusCode, response.json()], [200, DOCUMENT])
    assert.equal(response.headers['access-control-allow-origin'], 'https://app.example')
    await app.close()
  })
})
