/** The servers of the examples as somebody copies them into an empty folder, with the library and the framework installed. */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { json } from 'node:stream/consumers'
import { after, before, describe, it } from 'node:test'
import { TestIssuer } from '../src/interceptor/testing/test-issuer.ts'
import { sendPipelined } from '../test/support/pipelined.ts'

const ROOT = resolve(import.meta.dirname, '..')
const fhirBaseUrl = 'http://localhost:8080/fhir'
const issuer = new TestIssuer()
issuer.now = Date.now()

interface Batch {
  readonly records: readonly { readonly record: Readonly<Record<string, unknown>> }[]
}

/** The auth server, as far as an interceptor knows it, over HTTP. */
class AuthServer {
  url = ''
  readonly batches: Batch[] = []
  readonly #server: Server = createServer(async (request, response) => {
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify(await this.#answer(request.url, () => json(request))))
  })

  async #answer(url: string | undefined, read: () => Promise<unknown>): Promise<unknown> {
    switch (url) {
      case '/oauth2/jwks':
        return (await issuer.fetch('http://localhost:9000/oauth2/jwks')).json()
      case '/oauth2/token':
        return { access_token: 'a', expires_in: 300 }
      case '/audit-records':
        this.batches.push((await read()) as Batch)
        return { refused: [] }
      default:
        return {}
    }
  }

  async start(): Promise<void> {
    await new Promise<void>(done => this.#server.listen(0, '127.0.0.1', done))
    this.url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  stop(): Promise<void> {
    this.#server.closeAllConnections()
    return new Promise(done => this.#server.close(() => done()))
  }
}

const auth = new AuthServer()
const folder = mkdtempSync(join(tmpdir(), 'sallyport-examples-'))
before(async () => {
  await auth.start()
  const library = join(folder, 'node_modules/sallyport-interceptor')
  mkdirSync(library, { recursive: true })
  const manifest = { name: 'sallyport-interceptor', type: 'module', exports: './src/interceptor/index.ts' }
  writeFileSync(join(library, 'package.json'), JSON.stringify(manifest))
  symlinkSync(join(ROOT, 'src'), join(library, 'src'))
  for (const name of ['express', 'fastify'])
    symlinkSync(join(ROOT, 'node_modules', name), join(folder, 'node_modules', name))
})
after(async () => {
  await auth.stop()
  rmSync(folder, { recursive: true, force: true })
})

async function start(name: string, env: NodeJS.ProcessEnv = {}) {
  cpSync(join(ROOT, 'examples', name), join(folder, name))
  const child = spawn(process.execPath, [name], {
    cwd: folder,
    env: { PATH: process.env.PATH, AUTH_URL: auth.url, FHIR_BASE_URL: fhirBaseUrl, PORT: '0', ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [printed] = await once(child.stdout, 'data')
  const port = /Listening on port (\d+)/.exec(String(printed))?.[1] ?? assert.fail(String(printed))
  return { url: `http://localhost:${port}`, child }
}

async function stop(child: ChildProcess): Promise<void> {
  const exit = once(child, 'exit')
  child.kill('SIGTERM')
  assert.deepEqual(await exit, [0, null])
}

for (const name of ['express-server.mjs', 'fastify-server.mjs'])
  describe(`examples/${name}`, () => {
    let server: Awaited<ReturnType<typeof start>>
    before(async () => {
      server = await start(name)
    })
    after(() => stop(server.child))

    const send = (path: string, scope = 'patient/Condition.rs patient/Patient.rs', init: RequestInit = {}) =>
      fetch(`${server.url}${path}`, {
        ...init,
        headers: {
          authorization: `Bearer ${issuer.token({ iss: auth.url, scope })}`,
          'content-type': 'application/fhir+json',
          connection: 'close',
        },
      })

    it('answers no request without a token (BEARER-1)', async () => {
      const response = await fetch(`${server.url}/fhir/Patient/1`)
      assert.equal(response.status, 401)
      assert.equal(response.headers.get('www-authenticate'), 'Bearer')
      assert.equal((await response.json()).issue[0].code, 'login')
    })

    it('answers with an X-Request-Id, allowed or refused (LIBRARY-14)', async () => {
      for (const [path, status] of [
        ['/fhir/Patient/1', 200],
        ['/fhir/Patient/2', 403],
      ] as const) {
        const response = await send(path)
        assert.equal(response.status, status)
        assert.match(response.headers.get('x-request-id') ?? '', /^[\da-f-]{36}$/)
      }
    })

    it('answers a malformed body with a 400 in JSON', async () => {
      const response = await send('/fhir/Condition', 'patient/*.cruds', {
        method: 'POST',
        body: '{"resourceType',
      })
      assert.equal(response.status, 400)
      assert.match(response.headers.get('content-type') ?? '', /json/)
      if (name === 'express-server.mjs')
        assert.equal((await response.json()).resourceType, 'OperationOutcome')
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
      assert.equal((await send('/fhir/Patient/1')).status, 200)
      assert.equal((await send('/fhir/Patient/2')).status, 403)
      const search = await send('/fhir/Condition?patient=1')
      assert.equal(search.status, 200)
      assert.deepEqual((await search.json()).entry.length, 1)
    })

    it('holds back what another patient has, though the server knows nothing of patients', async () => {
      assert.equal((await send('/fhir/Condition/c1')).status, 200)
      const answers = await Promise.all(
        ['c2', 'absent'].map(async id => {
          const response = await send(`/fhir/Condition/${id}`)
          return [response.status, await response.text()]
        }),
      )
      assert.equal(answers[0]?.[0], 403)
      assert.deepEqual(answers[0], answers[1])
      assert.equal((await send('/fhir/Condition')).status, 403)
      assert.equal((await send('/fhir/Condition?patient=2')).status, 403)
    })

    it('refuses by type and permission with the text of ERROR-2 (ERROR-2)', async () => {
      const response = await send('/fhir/Condition?patient=1', 'patient/Patient.rs')
      assert.equal(response.status, 403)
      assert.equal(
        (await response.json()).issue[0].details.text,
        'Insufficient scope for GET on Condition. Required: patient/Condition.r or patient/*.rs',
      )
    })

    const write = (method: string, path: string, condition: object, scope = 'patient/Condition.cruds') =>
      send(path, scope, { method, body: JSON.stringify({ resourceType: 'Condition', ...condition }) })

    it('writes what is of the patient, and nothing of another', async () => {
      const post = (reference: string, scope: string) =>
        write('POST', '/fhir/Condition', { subject: { reference } }, scope)
      const created = await post('Patient/1', 'patient/Condition.cruds')
      assert.deepEqual([created.status, (await created.json()).resourceType], [201, 'Condition'])
      const unseen = await post('Patient/1', 'patient/Condition.c')
      assert.deepEqual([unseen.status, await unseen.text()], [201, ''])
      assert.equal((await post('Patient/2', 'patient/Condition.cruds')).status, 403)
    })

    it('changes what is of the patient, and nothing of another', async () => {
      const put = (id: string) =>
        write('PUT', `/fhir/Condition/${id}`, { id, subject: { reference: 'Patient/1' } })
      assert.equal((await put('c1')).status, 200)
      assert.equal((await put('c2')).status, 403)
    })
  })

describe('examples/express-server.mjs with a secret', () => {
  it('sends the records of its requests to the auth server before it ends (LIBRARY-11)', async () => {
    const { url, child } = await start('express-server.mjs', { CLIENT_SECRET: 's' })
    const headers = {
      authorization: `Bearer ${issuer.token({ iss: auth.url, scope: 'patient/*.rs' })}`,
      connection: 'close',
    }
    for (const id of ['1', '2']) await fetch(`${url}/fhir/Patient/${id}`, { headers })
    await stop(child)
    assert.deepEqual(
      auth.batches.flatMap(({ records }) => records.map(({ record }) => [record.request, record.status])),
      [
        ['Patient/1', 200],
        ['Patient/2', 403],
      ],
    )
  })
})
