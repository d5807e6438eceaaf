import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { FastifyInstance } from 'fastify'
import { sallyport } from '../../../test/support/command-line.ts'
import { fhirServer } from '../../backends/sqlite/index.ts'

describe('sallyport check upstream', () => {
  let app: FastifyInstance
  let url: string
  const authorizations = new Set<string | undefined>()
  before(async () => {
    const baseUrl = 'http://upstream.test/r4'
    app = await fhirServer({ baseUrl, dataFile: ':memory:', smartConfiguration: {} })
    app.addHook('onRequest', async request => {
      authorizations.add(request.headers.authorization)
    })
    url = `${await app.listen({ port: 0, host: '127.0.0.1' })}/r4`
  })
  after(() => app.close())

  const run = (args: readonly string[], env: Readonly<Record<string, string>> = {}) =>
    sallyport(['check', 'upstream', ...args], { env })

  it('prints what it found and the settings that it recommends, and exits with 0', async () => {
    const { exitCode, stdout, stderr } = await run(['--url', url, '--write'])
    assert.equal(exitCode, 0, stderr)
    assert.match(
      stdout,
      /^http:.*: Sallyport \d.*\nIn use: profile post-only: nothing shows .*\n\nok +FHIR version +4\.0\.1\n/,
    )
    assert.match(stdout, /\nok +If-Match on PUT +honoured \(412\)\n/)
    assert.match(stdout, /\nsmart\.fhir\.upstream-profile +auto +if-none-match\n/)
    assert.equal((await app.inject('/r4/Patient?_summary=count')).json().total, 0)
  })

  it('tries no writes without --write', async () => {
    const { exitCode, stdout } = await run(['--url', url])
    assert.equal(exitCode, 0)
    assert.match(stdout, /\nunknown +If-Match on PUT +needs --write\n/)
  })

  it("sends the gateway's credentials to the gateway's upstream only", async () => {
    const env = {
      SMART_FHIR_UPSTREAM_URL: url,
      SMART_FHIR_UPSTREAM_AUTH: 'bearer',
      SMART_FHIR_UPSTREAM_TOKEN: 'abc',
    }
    authorizations.clear()
    await run([], env)
    assert.deepEqual([...authorizations], ['Bearer abc'])
    authorizations.clear()
    await run(['--url', url.replace('127.0.0.1', 'localhost')], env)
    assert.deepEqual([...authorizations], [undefined])
  })

  it('exits with 1 if the server cannot be used or reached, or if no URL is set (CLI-6)', async () => {
    const { hostname, port } = new URL(url)
    const wrong = await run(['--url', `http://${hostname}:${port}/other`])
    assert.equal(wrong.exitCode, 1)
    assert.match(wrong.stdout, /\nunsafe +FHIR version +metadata answers 404 without a CapabilityStatement\n/)
    const absent = await run(['--url', 'http://127.0.0.1:9/fhir'])
    assert.deepEqual(
      [absent.exitCode, absent.stderr],
      [1, 'Cannot reach http://127.0.0.1:9/fhir: ECONNREFUSED\n'],
    )
    const none = await run([])
    assert.deepEqual([none.exitCode, none.stdout], [1, ''])
    assert.match(none.stderr, /^Cannot check: set SMART_FHIR_UPSTREAM_URL or --url/)
  })
})
