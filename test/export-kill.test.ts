/** An export over several processes: one is killed in the middle of a download, and another one serves the file; so do both workers of a start. */
import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { get, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { type ClientToken, createClientToken } from '../src/client-token/index.ts'
import { freePorts } from './support/free-ports.ts'
import { newPlace, type Place, runProgram, type Started, startProcess } from './support/started.ts'

const SCOPE = 'system/Basic.rs'
/** Together more than the sockets hold for a client that does not read. */
const RESOURCES = Array.from({ length: 200 }, (_, at) => ({
  resourceType: 'Basic',
  id: `b${at}`,
  code: { text: 'x'.repeat(100_000) },
}))

describe('an export', () => {
  let place: Place
  let token: ClientToken
  const running = new Set<Started>()
  before(async () => {
    place = await newPlace({ SMART_SAMPLE_PATIENTS: '1', SMART_LOG_LEVEL: 'info' })
    writeFileSync(join(place.folder, 'basic.ndjson'), RESOURCES.map(it => JSON.stringify(it)).join('\n'))
    const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-384' })
    const shared = { kid: 'k1', alg: 'ES384' } as const
    writeFileSync(
      join(place.folder, 'jwks.json'),
      JSON.stringify({ keys: [{ ...publicKey.export({ format: 'jwk' }), ...shared, use: 'sig' }] }),
    )
    await succeed('data import basic.ndjson')
    await succeed(`client add --id exporter --jwks-file jwks.json --scope ${SCOPE}`)
    token = createClientToken({
      tokenUrl: `${place.authUrl}/oauth2/token`,
      clientId: 'exporter',
      credential: { ...shared, privateKey },
      scope: SCOPE,
      fetch,
      clock: Date.now,
    })
  })
  after(() => {
    for (const { child } of running) child.kill('SIGKILL')
    place?.remove()
  })

  async function succeed(line: string): Promise<void> {
    const { exitCode, stdout, stderr } = await runProgram(line.split(' '), place)
    assert.equal(exitCode, 0, stdout + stderr)
  }

  async function start(args: readonly string[], env: Readonly<Record<string, string>>): Promise<Started> {
    const started = startProcess(args, { ...place, env: { ...place.env, ...env } })
    running.add(started)
    await started.printed(/is running/)
    return started
  }

  async function kill(started: Started): Promise<void> {
    started.child.kill('SIGKILL')
    await started.ended()
    running.delete(started)
  }

  /** Opens a connection, which the supervisor assigns to the next worker. */
  async function ask(url: string): Promise<IncomingMessage> {
    const headers = { authorization: await token.getAuthorization(), connection: 'close' }
    const [response] = await once(get(url, { headers, agent: false }), 'response')
    return response
  }

  async function askForText(url: string): Promise<string> {
    const response = await ask(url)
    assert.equal(response.statusCode, 200)
    let text = ''
    for await (const part of response.setEncoding('utf8')) text += part
    return text
  }

  /** Starts an export and returns its status URL and that of its file. */
  async function prepare(baseUrl: string): Promise<{ status: string; file: string }> {
    const reply = await ask(`${baseUrl}/$export`)
    assert.equal(reply.statusCode, 202)
    reply.resume()
    const status = reply.headers['content-location'] ?? ''
    for (;;) {
      const response = await ask(status)
      const wait = Number(response.headers['retry-after'] ?? 0)
      response.resume()
      if (response.statusCode === 200) break
      assert.equal(response.statusCode, 202)
      await pause(wait * 1000)
    }
    const { output } = JSON.parse(await askForText(status))
    assert.deepEqual(
      output.map(({ type, count }: { type: string; count: number }) => [type, count]),
      [['Basic', RESOURCES.length]],
    )
    return { status, file: output[0].url }
  }

  /** Reads the beginning of a file, ends the server, and sees that the rest does not come. */
  async function breakOff(url: string, server: Started): Promise<void> {
    const response = await ask(url)
    assert.equal(response.statusCode, 200)
    const [first] = await once(response, 'data')
    response.pause()
    await kill(server)
    let bytes: number = first.length
    await assert.rejects(
      async () => {
        for await (const part of response) bytes += part.length
      },
      { code: 'ECONNRESET' },
    )
    assert.ok(bytes < JSON.stringify(RESOURCES).length)
  }

  async function isWhole(url: string): Promise<void> {
    const lines = (await askForText(url)).trimEnd().split('\n')
    const found = lines
      .map(line => JSON.parse(line))
      .map(({ resourceType, id, code }) => ({ resourceType, id, code }))
    assert.deepEqual(found, RESOURCES)
  }

  it('whose server is killed in the middle of a download goes on at another one, and after a restart (EXPORT-6)', async () => {
    const [port = 0] = await freePorts(1)
    const first = await start(['start'], { SMART_WORKERS: '1' })
    const second = await start(['start', 'fhir'], { SMART_FHIR_PORT: String(port), SMART_WORKERS: '1' })
    const { status, file } = await prepare(place.fhirUrl)
    const other = new URL(file)
    other.port = String(port)
    await breakOff(other.href, second)
    await isWhole(file)
    await breakOff(file, first)

    const again = await start(['start'], { SMART_WORKERS: '2' })
    await isWhole(file)
    assert.match(await askForText(status), /"requiresAccessToken":true/)
    for (let count = 0; count < 3; count++) await isWhole(file)
    const workers = again
      .stdout()
      .split('\n')
      .filter(line => line.startsWith('{') && line.includes('$export-file'))
      .map(line => JSON.parse(line).worker)
    assert.deepEqual([...new Set(workers)].sort(), [1, 2])
    const started = await prepare(place.fhirUrl)
    await isWhole(started.file)
  })
})
