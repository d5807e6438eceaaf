/** What one connection, or one process that does not respond, may take from the others. */
import assert from 'node:assert/strict'
import { lookup } from 'node:dns/promises'
import { after, before, describe, it } from 'node:test'
import { fhirServer } from '../src/backends/sqlite/index.ts'
import { CONNECTION_LIMITS } from '../src/turns/index.ts'
import { createMetricsServer, createServer, listen } from '../src/web/index.ts'
import { makeCertificate } from './support/certificate.ts'
import { sendPipelined } from './support/pipelined.ts'
import { type Stack, startStack } from './support/stack.ts'

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

    it(`beyond the limit make ${name} close the connection`, async () => {
      assert.equal(await sendPipelined(getUrl(), 1_100), 'closed')
    })
  }

  it('have the limit even if the server cannot parse their URL, or does not know their Expect', async () => {
    const { issuerUrl } = stack.settings
    assert.equal(await sendPipelined(`${issuerUrl}/%zz`, 1_100), 'closed')
    assert.equal(await sendPipelined(issuerUrl, 1_100, ['Expect: a-miracle']), 'closed')
    assert.deepEqual(await sendPipelined(issuerUrl, 2, ['Expect: a-miracle']), ['417', '417'])
  })

  it('have the limit over https, and at the port of the metrics', async () => {
    const secure = await createServer({
      ...{ name: 'auth', url: 'https://localhost:9000' },
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

describe('a public document', () => {
  it('is made once by the FHIR server, however often it is requested', async () => {
    let times = 0
    const configuration = { toJSON: () => ({ times: ++times }) }
    const app = await fhirServer({
      ...{ dataFile: ':memory:', baseUrl: 'http://localhost:8080/fhir' },
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
