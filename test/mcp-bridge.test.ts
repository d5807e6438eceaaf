/** `sallyport mcp`: the client of the MCP project reaches the endpoint by standard input and output. */
import assert from 'node:assert/strict'
import { get } from 'node:http'
import { after, before, describe, it } from 'node:test'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import type { Page } from 'playwright-core'
import { inspectOnEveryScreen, useBrowser } from './support/browser.ts'
import { allow } from './support/mcp-agent.ts'
import { PROGRAM } from './support/program.ts'
import {
  newPlace,
  type Place,
  PROCESS_ENV,
  runProgram,
  type Started,
  startProcess,
} from './support/started.ts'

/** As long as a name may be, of a client that would like to look like the page. */
const NAME = `Scribe <b>"verified"</b> יעל ${'W'.repeat(160)}`

let place: Place
let servers: Started
before(async () => {
  place = await newPlace({ SMART_ACCESS_TOKEN_TTL_SECONDS: '5' })
  servers = startProcess(['start'], place)
  await servers.printed(/is running/)
  const { exitCode, stderr } = await runProgram(
    [
      'client',
      'add',
      '--id',
      'scribe',
      '--name',
      NAME,
      '--public',
      '--redirect-uri',
      'http://127.0.0.1/callback',
      '--scope',
      'launch/patient patient/*.rs',
    ],
    place,
  )
  assert.equal(exitCode, 0, stderr)
})
after(() => {
  servers?.child.kill('SIGKILL')
  place?.remove()
})
const open = useBrowser()

type Era = 'legacy' | { readonly pin: string }

class Assistant {
  readonly client: Client
  readonly transport: StdioClientTransport
  stderr = ''

  constructor(args: readonly string[], era: Era) {
    const [command = '', ...before] = PROGRAM
    this.client = new Client({ name: 'desktop', version: '1.0.0' }, { versionNegotiation: { mode: era } })
    this.transport = new StdioClientTransport({
      command,
      args: [...before, 'mcp', ...args],
      env: { ...definedOnly(PROCESS_ENV), ...place.env, BROWSER: 'true' },
      cwd: place.folder,
      stderr: 'pipe',
    })
    this.transport.stderr?.on('data', (chunk: Buffer) => {
      this.stderr += chunk
    })
  }

  /** The link that the person opens, once it is printed. */
  async findLink(): Promise<string> {
    for (;;) {
      const [, link] = /Allow the access in the browser: (\S+)\n/.exec(this.stderr) ?? []
      if (link !== undefined) {
        this.stderr = ''
        return link
      }
      await new Promise(resolve => this.transport.stderr?.once('data', resolve))
    }
  }
}

function definedOnly(env: Readonly<Record<string, string | undefined>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(env).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  )
}

async function pickAndAllow(page: Page, link: string): Promise<void> {
  await page.goto(link)
  await page.getByRole('heading', { level: 1, name: /^Choose a patient/ }).waitFor()
  await page
    .getByRole('radio', { name: /^Juniper, Alba\s/ })
    .first()
    .check()
  await page.getByRole('button', { name: 'Continue' }).click()
  await page.getByRole('heading', { level: 1, name: /^Allow Scribe <b>"verified"/ }).waitFor()
  await inspectOnEveryScreen(page, 'agent-consent-hostile')
  await allow(page)
  await page.getByText('You can close this page.').waitFor()
}

/** Any page can send requests to the port of a bridge that waits for the browser. */
async function disturb(callback: string): Promise<void> {
  for (const path of ['//', '//[', '/callback', '/callback?code=x&state=x', '/other']) {
    const { hostname, port } = new URL(callback)
    const status = await new Promise((resolve, reject) =>
      get({ hostname, port, path }, response => resolve(response.resume().statusCode)).on('error', reject),
    )
    assert.equal(status, 404, path)
  }
}

async function logIn(page: Page): Promise<void> {
  const form = { username: 'clinician', password: 'sallyport' }
  await page.request.post(`${place.authUrl}/login`, { form, maxRedirects: 0 })
}

describe('sallyport mcp', () => {
  for (const era of ['legacy', { pin: '2026-07-28' }] as const)
    it(`serves a desktop assistant on loopback, ${era === 'legacy' ? 'initialize' : era.pin} (CLI-14)`, async () => {
      const { client, transport } = new Assistant(['--client', 'scribe', '--patient', 'patient-1'], era)
      await client.connect(transport)
      const { tools } = await client.listTools()
      assert.equal(tools[0]?.name, 'get_patient_summary')
      const [summary, found] = await Promise.all([
        client.callTool({ name: 'get_patient_summary', arguments: {} }),
        client.callTool({ name: 'search', arguments: { type: 'Condition' } }),
      ])
      assert.match(JSON.stringify(summary.content), /Juniper, Alba/)
      assert.notEqual(found.isError, true)
      const wrong = await client.callTool({ name: 'search', arguments: { type: 'Nothing' } })
      assert.equal(wrong.isError, true)
      await client.close()
    })

  it('asks the person in the browser, refreshes the token, and ends with its input', async () => {
    const { page } = await open()
    await logIn(page)
    const assistant = new Assistant(
      ['--client', 'scribe', '--patient', 'patient-1', '--browser', '--scope', 'patient/Patient.rs'],
      'legacy',
    )
    const connected = assistant.client.connect(assistant.transport)
    const link = await assistant.findLink()
    await disturb(new URL(link).searchParams.get('redirect_uri') ?? '')
    await pickAndAllow(page, link)
    await connected
    const read = () =>
      assistant.client.callTool({ name: 'read', arguments: { reference: 'Patient/patient-1' } })
    assert.match(JSON.stringify((await read()).content), /Juniper/)
    // A call that needs more asks the person for it.
    const searched = assistant.client.callTool({ name: 'search', arguments: { type: 'Condition' } })
    await pickAndAllow(page, await assistant.findLink())
    assert.notEqual((await searched).isError, true)
    // An access token lasts 5 s.
    const refreshes = async () => (await runProgram(['audit', '--kind', 'refresh', '--json'], place)).stdout
    while (!(await refreshes()).includes('"scribe"'))
      assert.match(JSON.stringify((await read()).content), /Juniper/)
    assert.equal(assistant.stderr, '')
    const { pid } = assistant.transport
    await assistant.client.close()
    assert.throws(() => process.kill(Number(pid), 0), { code: 'ESRCH' })
  })

  it('refuses another patient than the one that the command names, and says so on standard error', async () => {
    const { page } = await open()
    await logIn(page)
    const assistant = new Assistant(['--client', 'scribe', '--patient', 'patient-2', '--browser'], 'legacy')
    const connected = assistant.client.connect(assistant.transport)
    const refused = assert.rejects(connected, /another patient was chosen/)
    await pickAndAllow(page, await assistant.findLink())
    await refused
    assert.match(assistant.stderr, /Cannot answer initialize: another patient was chosen/)
    assert.doesNotMatch(assistant.stderr, /eyJ|Juniper/)
    await assistant.client.close()
  })

  it('answers what is no message and what it cannot send, and needs a registered app', async () => {
    const wrong = await runProgram(
      ['mcp', '--client', 'scribe', '--patient', 'patient-1'],
      place,
      'no JSON\n\n[]\n',
    )
    assert.deepEqual(
      wrong.stdout
        .trim()
        .split('\n')
        .map(line => JSON.parse(line).error.code),
      [-32700, -32700],
    )
    assert.equal(wrong.exitCode, 0)
    const unknown = await runProgram(['mcp', '--client', 'nobody', '--patient', 'patient-1'], place)
    assert.equal(unknown.exitCode, 1)
    assert.match(unknown.stderr, /Cannot issue token: .*nobody/)
    const away = await runProgram(
      ['mcp', '--client', 'scribe', '--url', 'http://127.0.0.1:9/fhir/mcp'],
      place,
      '{"jsonrpc":"2.0","id":7,"method":"ping"}\n{"jsonrpc":"2.0","method":"notifications/initialized"}\n',
    )
    assert.deepEqual(JSON.parse(away.stdout).id, 7)
    assert.match(away.stderr, /Cannot answer ping: /)
  })

  it('gets no token while assistants are off', async () => {
    await runProgram(['agents', 'off'], place)
    const { exitCode, stderr } = await runProgram(
      ['mcp', '--client', 'scribe', '--patient', 'patient-1'],
      place,
    )
    await runProgram(['agents', 'on'], place)
    assert.equal(exitCode, 1)
    assert.match(stderr, /assistants/i)
  })
})
