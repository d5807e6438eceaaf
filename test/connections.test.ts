/** What one connection, or one process that does not respond, may take from the others. */
import assert from 'node:assert/strict'
import { lookup } from 'node:dns/promises'
import { once } from 'node:events'
import { connect } from 'node:net'
import { DatabaseSync } from 'node:sqlite'
import { after, before, describe, it } from 'node:test'
import { SigningClient } from '../src/auth/testing/signing-client.ts'
import { fhirServer } from '../src/backends/sqlite/index.ts'
import { CONNECTION_LIMITS } from '../src/turns/index.ts'
import { createMetricsServer, createServer, listen } from '../src/web/http/index.ts'
import { makeCertificate } from './support/certificate.ts'
import { sendPipelined } from './support/pipelined.ts'
import { type Stack, startStack } from './support/stack.ts'
import { countRuns } from './support/thorough.ts'

const { waiting } = CONNECTION_LIMITS

let stack: Stack
before(async () => {
  stack = await startStack({ env: { SMART_SAMPLE_PATIENTS: '2' } })
})
after(() => stack?.close())

describe('pipelined requests', () => {
  const DOCUMENTS = {
    'the auth server': () => `${stack.settings.issuerUrl}/.well-known/openid-configuration`,
    'the FHIR server': () => `${stack.settings.fhirBaseUrl}/metadata`,
    'the app server': () => `${stack.settings.appUrl}/api/openapi.json`,
  }
  for (const [name, getUrl] of Object.entries(DOCUMENTS)) {
    it(`are all answered by ${name} up to the limit`, async () => {
      const statuses = await sendPipelined(getUrl(), waiting + 1)
      assert.deepEqual(
        statuses,
        Array.from({ length: waiting + 1 }, () => '200'),
      )
    })

    it(`beyond the limit make ${name} close the connection (HTTP-11)`, async () => {
      assert.equal(await sendPipelined(getUrl(), 1_100), 'closed')
    })
  }

  it('have the limit even if the server cannot parse their URL, or does not know their Expect (HTTP-11)', async () => {
    const { issuerUrl } = stack.settings
    assert.equal(await sendPipelined(`${issuerUrl}/%zz`, 1_100), 'closed')
    assert.equal(await sendPipelined(issuerUrl, 1_100, ['Expect: a-miracle']), 'closed')
    assert.deepEqual(await sendPipelined(issuerUrl, 2, ['Expect: a-miracle']), ['417', '417'])
  })

  it('have the limit over https, and at the port of the metrics', async () => {
    const secure = await createServer({
      name: 'auth',
      url: 'https://localhost:9000',
      tls: makeCertificate(),
    })
    const metrics = createMetricsServer(async () => [])
    const urls = [
      `https://127.0.0.1:${await listen(secure, 0, ['127.0.0.1'])}/healthz`,
      `http://127.0.0.1:${await listen(metrics, 0, ['127.0.0.1'])}/metrics`,
    ]
    for (const url of urls) {
      assert.equal(await sendPipelined(url, 1_100), 'closed', url)
      assert.deepEqual(await sendPipelined(url, 2), ['200', '200'], url)
    }
    await Promise.all([secure.close(), metrics.close()])
  })

  it('have the limit on every address of localhost', async () => {
    const app = await createServer({ name: 'auth', url: 'http://localhost:9000' })
    const port = await listen(app, 0, ['localhost'])
    for (const { address, family } of await lookup('localhost', { all: true })) {
      const host = family === 6 ? `[${address}]` : address
      assert.equal(await sendPipelined(`http://${host}:${port}/healthz`, 1_100), 'closed', host)
    }
    await app.close()
  })
})

describe('a body that is too large', () => {
  const POSTED = {
    'the auth server': () => `${stack.settings.issuerUrl}/oauth2/register`,
    'the FHIR server': () => `${stack.settings.fhirBaseUrl}/Observation`,
    'the app server': () => `${stack.settings.appUrl}/api/session`,
  }
  const PIECE = Buffer.alloc(1024 * 1024, 0x20)

  /** Sends it all before it reads the response, which is the last one of the connection. */
  async function sendAndRead(url: string): Promise<string> {
    const { hostname, port, pathname } = new URL(url)
    const socket = connect(Number(port), hostname).pause()
    const head = [`POST ${pathname} HTTP/1.1`, 'Host: localhost', 'Connection: close']
    const type = ['Content-Type: application/json', `Content-Length: ${12 * PIECE.length}`]
    socket.write([...head, ...type, '', ''].join('\r\n'))
    const failed = once(socket, 'error').then(([error]) => Promise.reject(error))
    const sent = (async () => {
      for (let at = 0; at < 12; at++) if (!socket.write(PIECE)) await once(socket, 'drain')
      return String((await socket.toArray())[0])
    })()
    return Promise.race([sent, failed]).finally(() => socket.destroy())
  }

  for (const [name, getUrl] of Object.entries(POSTED))
    it(`gets a response of ${name} on a connection that is then closed, every time`, async () => {
      for (let time = 0; time < countRuns(30); time++)
        assert.match(await sendAndRead(getUrl()), /^HTTP\/1.1 4\d\d /)
    })
})

describe('a database that another process holds', () => {
  /** Milliseconds until the work ends. */
  async function time(work: Promise<unknown>): Promise<number> {
    const began = performance.now()
    await work
    return performance.now() - began
  }

  it('lets /login and /oauth2/token wait no longer than one write, then they answer 503', async () => {
    const { issuerUrl, databaseUrl } = stack.settings
    const client = await registerBackEnd(issuerUrl)
    const holder = new DatabaseSync(databaseUrl.replace(/^sqlite:/, ''))
    holder.exec('BEGIN IMMEDIATE')
    try {
      const post = async (path: string, form: Readonly<Record<string, string>>) => {
        const sent = await fetch(issuerUrl + path, { method: 'POST', body: new URLSearchParams(form) })
        assert.equal(sent.status, 503, `${path}: ${await sent.text()}`)
      }
      const { username, password } = stack.user
      const write = stack.store.db
        .transaction()
        .execute(async db => db.deleteFrom('grant').where('id', '=', 'none').execute())
      const [once, ...requests] = await Promise.all([
        time(assert.rejects(write)),
        time(post('/login', { username, password })),
        time(post('/oauth2/token', client())),
      ])
      for (const ms of requests) assert.ok(ms < once * 1.3, `${ms} ms, one write ${once} ms`)
    } finally {
      holder.exec('ROLLBACK')
      holder.close()
    }
  })
})

/** A back-end client: returns the form of its next token request. */
async function registerBackEnd(issuerUrl: string): Promise<() => Record<string, string>> {
  const clock = {
    get now() {
      return Date.now()
    },
  }
  const metadata = {
    token_endpoint_auth_method: 'private_key_jwt',
    grant_types: ['client_credentials'],
    scope: 'system/*.rs',
    jwks: { keys: [new SigningClient('', clock).jwk] },
  }
  const registered = await fetch(`${issuerUrl}/oauth2/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(metadata),
  })
  const client = new SigningClient((await registered.json()).client_id, clock)
  const proof = () => client.makeProof({ aud: `${issuerUrl}/oauth2/token` })
  return () => ({ grant_type: 'client_credentials', scope: 'system/*.rs', ...proof() })
}

describe('a public document', () => {
  it('is made once by the FHIR server, however often it is requested (HTTP-12)', async () => {
    let times = 0
    const configuration = { toJSON: () => ({ times: ++times }) }
    const app = await fhirServer({
      dataFile: ':memory:',
      baseUrl: 'http://localhost:8080/fhir',
      smartConfiguration: () => configuration,
    })
    const get = async (path: string) => (await app.inject(`/fhir/${path}`)).rawPayload
    const path = '.well-known/smart-configuration'
    assert.deepEqual([String(await get(path)), String(await get(path))], ['{"times":1}', '{"times":1}'])
    assert.deepEqual(await get('metadata'), await get('metadata'))
    assert.equal(times, 1)
    await app.close()
  })
})
