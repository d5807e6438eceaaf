import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { sallyport } from '../../../test/support/command-line.ts'

describe('sallyport health', () => {
  const server = createServer((request, response) => {
    response.writeHead(request.url === '/healthz' ? 200 : 503).end()
  })
  let port = 0
  before(async () => {
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    port = (server.address() as AddressInfo).port
  })
  after(() => server.close())

  /** Nothing listens on port 1. */
  const run = (args: readonly string[], ports: readonly number[] = [port, 1, 1]) => {
    const [auth, fhir, app] = ports.map(String)
    return sallyport(['health', ...args], {
      env: { SMART_AUTH_PORT: auth, SMART_FHIR_PORT: fhir, SMART_APP_PORT: app },
    })
  }

  it('succeeds if one server runs, as in a container that runs only that one (UPGRADE-3)', async () => {
    assert.deepEqual(await run([]), {
      exitCode: 0,
      stdout: `200 http://localhost:${port}/healthz\n`,
      stderr: '',
    })
  })

  it('fails if none runs', async () => {
    const { exitCode, stdout } = await run([], [1, 1, 1])
    assert.equal(exitCode, 1)
    assert.match(stdout, /^ECONNREFUSED http:\/\/localhost:1\/healthz$/m)
  })

  it('asks whether the servers are ready, and fails if one is not', async () => {
    const { exitCode, stdout } = await run(['--ready'])
    assert.equal(exitCode, 1)
    assert.equal(stdout, `503 http://localhost:${port}/readyz\n`)
  })

  it('asks a URL', async () => {
    assert.equal((await run([`http://127.0.0.1:${port}/healthz`])).exitCode, 0)
    assert.equal((await run([`http://127.0.0.1:${port}/readyz`])).exitCode, 1)
    assert.equal((await run(['http://127.0.0.1:1/healthz'])).exitCode, 1)
  })
})
