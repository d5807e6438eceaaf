/** The switch and the limit of assistants hold on every instance: two workers, and another FHIR server on the same database. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { getAgentToken } from './support/agent-token.ts'
import { freePorts } from './support/free-ports.ts'
import { newPlace, type Place, runProgram, type Started, startProcess } from './support/started.ts'

const WORKERS = 2
const CALLS = 8
const CLIENT = { client: 'agent', scope: 'patient/*.rs', patient: 'patient-1' }

let place: Place
let first: Started
let second: Started
/** The endpoint of each instance. */
let urls: readonly string[]
before(async () => {
  const [port = 0] = await freePorts(1)
  place = await newPlace({ SMART_AGENTS_CALLS_PER_MINUTE: String(CALLS) })
  first = startProcess(['start'], { ...place, env: { ...place.env, SMART_WORKERS: String(WORKERS) } })
  await first.printed(/is running/)
  second = startProcess(['start', 'fhir'], { ...place, env: { ...place.env, SMART_FHIR_PORT: String(port) } })
  await second.printed(/is running/)
  urls = [`${place.fhirUrl}/mcp`, `http://localhost:${port}/fhir/mcp`]
  const { exitCode, stderr } = await runProgram(
    [
      'client',
      'add',
      '--id',
      'agent',
      '--public',
      '--redirect-uri',
      'http://127.0.0.1/callback',
      '--scope',
      'patient/*.rs',
    ],
    place,
  )
  assert.equal(exitCode, 0, stderr)
})
after(() => {
  for (const started of [first, second]) started?.child.kill('SIGKILL')
  place?.remove()
})

/** Each request opens a connection, which the supervisor assigns to the next worker. */
async function list(url: string, token: string): Promise<Response> {
  return fetch(url, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', connection: 'close' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' }),
  })
}

describe('the assistants of several instances', () => {
  it('are refused on every instance within 5 seconds after agents off, and only they (AGENT-8)', async () => {
    const token = await getAgentToken(place, CLIENT)
    for (const url of urls) assert.equal((await list(url, token)).status, 200)
    const { stdout } = await runProgram(['agents', 'off'], place)
    assert.match(stdout, /loses its access within 5 seconds/)
    // Each of its three processes refuses, twice in turn.
    const refuses = async (url: string) => {
      const statuses = [
        await list(url, token),
        await list(url, token),
        await list(url, token),
        await list(url, token),
      ]
      return statuses.every(({ status }) => status === 401)
    }
    const left = new Set(urls)
    for (let waited = 0; left.size > 0 && waited < 5_000; waited += 250) {
      for (const url of left) if (await refuses(url)) left.delete(url)
      await pause(250)
    }
    assert.deepEqual([...left], [])
    const app = await runProgram(['token', '--client', 'agent', '--patient', 'patient-1'], place)
    const read = await fetch(`${place.fhirUrl}/Patient/patient-1`, {
      headers: { authorization: `Bearer ${app.stdout.trim()}` },
    })
    assert.equal(read.status, 200)
  })

  it('may ask again after agents on, and access that ended stays ended', async () => {
    await assert.rejects(getAgentToken(place, CLIENT))
    await runProgram(['agents', 'on'], place)
    const token = await getAgentToken(place, CLIENT)
    for (const url of [...Array.from({ length: WORKERS }, () => urls[0]), urls[1]]) {
      let status = 401
      for (let waited = 0; status === 401 && waited < 10_000; waited += 250) {
        status = (await list(String(url), token)).status
        await pause(250)
      }
      assert.equal(status, 200)
    }
  })

  it('have a limit of calls a minute in each process (MCP-8)', async () => {
    const token = await getAgentToken(place, CLIENT)
    for (const [url, processes] of [
      [urls[0], WORKERS],
      [urls[1], 1],
    ] as const) {
      const replies: Response[] = []
      for (let sent = 0; sent < 2 * processes * CALLS + 4; sent += 1)
        replies.push(await list(String(url), token))
      const allowed = replies.filter(({ status }) => status === 200).length
      const limited = replies.filter(({ status }) => status === 429)
      // A new minute may have begun.
      assert.ok(allowed >= CALLS && allowed <= 2 * processes * CALLS, `${allowed} of ${replies.length}`)
      assert.ok(limited.length > 0)
      assert.ok(limited.every(({ headers }) => Number(headers.get('retry-after')) > 0))
    }
  })
})
