import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { after, before, describe, it } from 'node:test'
import { TestIssuer } from '../src/interceptor/testing/test-issuer.ts'
import { sendPipelined } from '../test/support/pipelined.ts'
import { expressServer } from './express-server.ts'
import { fastifyServer } from './fastify-server.ts'

const fhirBaseUrl = 'http://localhost:8080/fhir'
const auth = new TestIssuer()
auth.now = Date.now()

/** The auth server, as far as an interceptor knows it, over HTTP. */
const keyServer = createServer(async (request, response) => {
  if (request.url !== '/oauth2/jwks') return void response.writeHead(404).end()
  response.setHeader('content-type', 'application/json')
  response.end(JSON.stringify(await (await auth.fetch('http://localhost:9000/oauth2/jwks')).json()))
})

async function listen(server: Server): Promise<string> {
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

function close(server: Server): Promise<void> {
  server.closeAllConnections()
  return new Promise(resolve => server.close(() => resolve()))
}

const EXAMPLES = {
  'examples/express-server.ts': async (authUrl: string) => {
    const server = createServer(expressServer(authUrl, fhirBaseUrl))
    return { url: await listen(server), close: () => close(server) }
  },
  'examples/fastify-server.ts': async (authUrl: string) => {
    const app = fastifyServer(authUrl, fhirBaseUrl)
    return { url: await app.listen({ port: 0, host: '127.0.0.1' }), close: () => app.close() }
  },
}

for (const [name, start] of Object.entries(EXAMPLES))
  describe(name, () => {
    let authUrl = ''
    let server: { readonly url: string; close(): Promise<unknown> }
    before(async () => {
      authUrl = keyServer.listening
        ? `http://127.0.0.1:${(keyServer.address() as AddressInfo).port}`
        : await listen(keyServer)
      server = await start(authUrl)
    })
    after(async () => {
      await server.close()
      if (keyServer.listening && name.includes('fastify')) await close(keyServer)
    })

    const get = (path: string, scope = 'patient/Condition.rs patient/Patient.rs', init: RequestInit = {}) =>
      fetch(`${server.url}${path}`, {
        ...init,
        headers: {
          authorization: `Bearer ${auth.token({ iss: authUrl, scope })}`,
          'content-type': 'application/fhir+json',
        },
      })

    it('answers no request without a token (BEARER-1)', async () => {
      const response = await fetch(`${server.url}/fhir/Patient/1`)
      assert.equal(response.status, 401)
      assert.equal(response.headers.get('www-authenticate'), 'Bearer')
      assert.equal((await response.json()).issue[0].code, 'login')
    })

    it('guards the FHIR base and nothing else (LIBRARY-1)', async () => {
      assert.equal(await (await fetch(`${server.url}/health`)).text(), 'ok')
    })

    it('closes a connection with too many pipelined requests, on every path (HTTP-11)', async () => {
      for (const path of ['/fhir/Patient/1', '/health', '/nowhere'])
        assert.equal(await sendPipelined(`${server.url}${path}`, 1_100), 'closed', path)
      assert.deepEqual(await sendPipelined(`${server.url}/health`, 3), ['200', '200', '200'])
    })

    it('serves the patient of the token and that patient alone', async () => {
      assert.equal((await get('/fhir/Patient/1')).status, 200)
      assert.equal((await get('/fhir/Patient/2')).status, 403)
      const search = await get('/fhir/Condition?patient=1')
      assert.equal(search.status, 200)
      assert.deepEqual((await search.json()).entry.length, 1)
    })

    it('holds back what another patient has, though the server knows nothing of patients', async () => {
      assert.equal((await get('/fhir/Condition/c1')).status, 200)
      const answers = await Promise.all(
        ['c2', 'absent'].map(async id => {
          const response = await get(`/fhir/Condition/${id}`)
          return [response.status, await response.text()]
        }),
      )
      assert.equal(answers[0]?.[0], 403)
      assert.deepEqual(answers[0], answers[1])
      assert.equal((await get('/fhir/Condition')).status, 403)
      assert.equal((await get('/fhir/Condition?patient=2')).status, 403)
    })

    it('refuses by type and permission with the text of ERROR-2 (ERROR-2)', async () => {
      const response = await get('/fhir/Condition?patient=1', 'patient/Patient.rs')
      assert.equal(response.status, 403)
      assert.equal(
        (await response.json()).issue[0].details.text,
        'Insufficient scope for GET on Condition. Required: patient/Condition.r or patient/*.rs',
      )
    })

    it('writes what is of the patient, and nothing of another', async () => {
      const post = (reference: string, scope: string) =>
        get('/fhir/Condition', scope, {
          method: 'POST',
          body: JSON.stringify({ resourceType: 'Condition', subject: { reference } }),
        })
      const created = await post('Patient/1', 'patient/Condition.cruds')
      assert.deepEqual([created.status, (await created.json()).resourceType], [201, 'Condition'])
      const unseen = await post('Patient/1', 'patient/Condition.c')
      assert.deepEqual([unseen.status, await unseen.text()], [201, ''])
      assert.equal((await post('Patient/2', 'patient/Condition.cruds')).status, 403)
    })
  })

describe('examples/audited-server.ts', () => {
  it('sends the records of its requests to the auth server before it ends (LIBRARY-11)', async () => {
    const batches: { readonly records: readonly { readonly record: Readonly<Record<string, unknown>> }[] }[] =
      []
    const authServer = createServer(async (request, response) => {
      const answer = async (): Promise<unknown> => {
        switch (request.url) {
          case '/oauth2/jwks':
            return (await auth.fetch('http://localhost:9000/oauth2/jwks')).json()
          case '/oauth2/token':
            return { access_token: 'a', expires_in: 300 }
          case '/audit-records':
            batches.push((await json(request)) as (typeof batches)[number])
            return { refused: [] }
          default:
            return {}
        }
      }
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify(await answer()))
    })
    const authUrl = await listen(authServer)
    const server = spawn(process.execPath, ['examples/audited-server.ts'], {
      env: { ...process.env, AUTH_URL: authUrl, FHIR_BASE_URL: fhirBaseUrl, CLIENT_SECRET: 's', PORT: '0' },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const [printed] = await once(server.stdout, 'data')
    const port = /port: (\d+)/.exec(String(printed))?.[1]
    const token = auth.token({ iss: authUrl, scope: 'patient/*.rs' })
    const headers = { authorization: `Bearer ${token}`, connection: 'close' }
    for (const id of ['1', '2']) await fetch(`http://127.0.0.1:${port}/fhir/Patient/${id}`, { headers })
    server.kill('SIGTERM')
    await once(server, 'exit')
    await close(authServer)
    assert.deepEqual(
      batches.flatMap(({ records }) => records.map(({ record }) => [record.request, record.status])),
      [
        ['Patient/1', 200],
        ['Patient/2', 403],
      ],
    )
  })
})
