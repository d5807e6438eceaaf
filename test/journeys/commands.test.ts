/** Every command once, beside running servers. */
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { startUpstream, type Upstream } from '../../examples/upstream.ts'
import { type CommandName, commandNames } from '../../src/cli/commands/table.ts'
import { freePorts } from '../support/free-ports.ts'
import { HttpUser } from '../support/http-user.ts'
import { newPlace, type Place, runProgram, type Started, startProcess } from '../support/started.ts'

interface Step {
  /** What follows the name. A function runs when it is the command's turn. */
  readonly args?: string | (() => Promise<string> | string)
  readonly stdin?: string
  readonly exitCode?: number
  /** What it prints. */
  readonly prints: RegExp
}

let place: Place
let servers: Started
let upstream: Upstream
before(async () => {
  const [port = 0] = await freePorts(1)
  upstream = await startUpstream(port, 1)
  place = await newPlace({ SMART_WORKERS: '1' })
  servers = startProcess(['start'], place)
  await servers.printed(/is running/)
})
after(async () => {
  servers?.child.kill('SIGKILL')
  await upstream?.close()
  place?.remove()
})

function visit(username: string): HttpUser {
  const user = { username, password: 'sallyport', name: '' }
  return new HttpUser({ settings: { issuerUrl: place.authUrl, appUrl: place.appUrl }, user })
}

/** The first value of a property in what a command prints as JSON. */
async function findInJson(property: string, ...command: readonly string[]): Promise<string> {
  const { stdout } = await runProgram([...command, '--json'], place)
  return new RegExp(`"${property}": "([^"]+)"`).exec(stdout)?.[1] ?? assert.fail(stdout)
}

function write(name: string, value: object): string {
  writeFileSync(join(place.folder, name), JSON.stringify(value))
  return name
}

async function registerApp(): Promise<string> {
  const answer = await fetch(`${place.authUrl}/oauth2/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ redirect_uris: ['http://localhost:3000/cb'], token_endpoint_auth_method: 'none' }),
  })
  const { client_id: id }: { client_id?: string } = JSON.parse(await answer.text())
  return id ?? assert.fail(String(answer.status))
}

async function launchDemoApp(): Promise<void> {
  const user = visit('clinician')
  await user.signIn()
  await user.launch('patient-1')
  assert.equal((await user.api('summary')).status, 200)
}

async function exportTrail(): Promise<string> {
  await runProgram(['clinician', 'set', 'clinician', '--admin'], place)
  const admin = visit('clinician')
  await admin.signIn()
  const answer = await admin.request(`${place.authUrl}/admin/audit/export.csv`)
  assert.equal(answer.status, 200, String(answer.headers.get('location')))
  writeFileSync(join(place.folder, 'trail.csv'), await answer.text())
  return 'trail.csv'
}

/** In their order. The compiler asks for a step of each command. */
const STEPS = {
  start: { args: '--help', prints: /Usage: / },
  'client add': {
    args: '--id my-app --public --redirect-uri http://localhost:3000/cb --scope patient/*.rs --launch-url http://localhost:3000/launch',
    prints: /^client_id: my-app$/m,
  },
  'client list': { prints: /^my-app /m },
  'client show': { args: 'my-app', prints: /localhost:3000/ },
  'client set': { args: 'my-app --name Mine', prints: /^Changed app my-app$/m },
  'client approve': { args: registerApp, prints: /^Approved/m },
  'client disable': { args: 'my-app', prints: /^Disabled app my-app$/m },
  'client enable': { args: 'my-app', prints: /^Enabled app my-app$/m },
  launch: { args: '--client my-app --patient patient-1', prints: /^http:\/\/localhost:3000\/launch\?/m },
  mcp: {
    args: '--client my-app --patient patient-1',
    stdin: '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}\n',
    prints: /"serverInfo":\{"name":"sallyport"/,
  },
  token: { args: '--client my-app --patient patient-1', prints: /^ey/ },
  explain: {
    args: '--url /Condition?patient=1 --scope patient/Condition.rs --patient 1',
    prints: /patient\/Condition\.rs/,
  },
  inferno: { prints: /"test_suite_id": "g10_certification"/ },
  problems: { prints: /^$/ },
  'data import': {
    args: () => write('import.json', { resourceType: 'Patient', id: 'imported' }),
    prints: /^ {2}created {4}1$/m,
  },
  'data export': { args: '--gzip out', prints: /^Exported [\d,]+ resources to out$/m },
  'data reset': { args: '--yes', prints: /^Reset$/m },
  'clinician add': {
    args: '--username ada --display-name Ada --fhir-user practitioner-1 --admin',
    stdin: 'a long sentence of words',
    prints: /^Added clinician ada /m,
  },
  'clinician list': { prints: /^ada /m },
  'clinician set': { args: 'ada --no-admin', prints: /^Changed clinician ada$/m },
  'clinician set-password': {
    args: 'ada',
    stdin: 'another sentence of words',
    prints: /^Set the password of clinician ada$/m,
  },
  'clinician reset-second-factor': { args: 'ada', exitCode: 1, prints: /: the user has no second factor$/m },
  'clinician unlock': { args: 'ada', exitCode: 1, prints: /: the account is not locked$/m },
  'clinician link': {
    args: '--username ada --issuer https://idp.example --subject 7',
    prints: /^Linked clinician ada /m,
  },
  'clinician disable': { args: 'ada', prints: /^Disabled clinician ada$/m },
  'clinician enable': { args: 'ada', prints: /^Enabled clinician ada$/m },
  'clinician remove': { args: 'ada', prints: /^Removed clinician ada$/m },
  'account add': {
    args: '--username petra --patient patient-2 --activation-link',
    prints: /\/login\/activate#/,
  },
  'account list': { prints: /^petra /m },
  'account set': { args: 'petra --display-name Petra', prints: /^Changed account petra$/m },
  'account reset-second-factor': { args: 'petra', exitCode: 1, prints: /: the user has no second factor$/m },
  'account unlock': { args: 'petra', exitCode: 1, prints: /: the account is not locked$/m },
  'account disable': { args: 'petra', prints: /^Disabled account petra$/m },
  'account enable': { args: 'petra', prints: /^Enabled account petra$/m },
  'account remove': { args: 'petra', prints: /^Removed account petra$/m },
  'login explain': {
    args: () => `--claims ${write('claims.json', { iss: 'https://idp.example', sub: '7' })}`,
    exitCode: 1,
    prints: /provider/,
  },
  'grant list': {
    args: async () => {
      await launchDemoApp()
      return ''
    },
    prints: /clinician/,
  },
  'grant revoke': { args: () => findInJson('id', 'grant', 'list'), prints: /^Revoked grant /m },
  'bulk-export list': { prints: /^No app exports data\.$/m },
  'bulk-export show': { args: 'none', exitCode: 1, prints: /there is no export none/ },
  'bulk-export end': { args: 'none', exitCode: 1, prints: /there is no export none/ },
  'sign-in list': { prints: /clinician/ },
  'sign-in end': { args: () => findInJson('id', 'sign-in', 'list'), prints: /^Ended the sign-in of / },
  audit: { args: '--kind admin --limit 5', prints: /grant revoke/ },
  'audit verify': { prints: /./ },
  'audit check-file': { args: exportTrail, prints: /unchanged/ },
  settings: { prints: /^smart\.server\.issuer-url: /m },
  health: { args: '--ready', prints: /^200 / },
  check: { prints: /database/i },
  'check upstream': { args: () => `--url ${upstream.url}`, prints: /\bok\b/ },
  'upgrade check': { prints: /./, exitCode: 3 },
  'upgrade apply': { prints: /./ },
  'agents off': { prints: /^Assistants are off/ },
  'agents on': { prints: /^Assistants are on/ },
  'keys list': { prints: /./ },
  'keys rotate': { prints: /^New tokens are signed with a new key from / },
  'keys withdraw': { args: () => findInJson('kid', 'keys', 'list'), prints: /^Withdrew key / },
  'client remove': { args: 'my-app', prints: /^Removed app my-app$/m },
  completion: { args: 'bash', prints: /sallyport/ },
} satisfies Record<CommandName, Step>

describe('each command', () => {
  it('has its turn (CLI-1)', () => assert.deepEqual(Object.keys(STEPS).toSorted(), commandNames.toSorted()))

  const steps: readonly (readonly [string, Step])[] = Object.entries(STEPS)
  for (const [name, { args = '', stdin = '', exitCode = 0, prints }] of steps)
    it(`${name} does what it is for, beside the servers (CLI-1)`, async () => {
      const words = typeof args === 'string' ? args : await args()
      const ran = await runProgram(
        [...name.split(' '), ...words.split(' ').filter(word => word !== '')],
        place,
        stdin,
      )
      assert.equal(ran.exitCode, exitCode, ran.stderr + ran.stdout)
      assert.match(ran.stdout + ran.stderr, prints)
    })

  it('leaves servers that work, without an error in their log', async () => {
    await launchDemoApp()
    servers.child.kill('SIGTERM')
    assert.deepEqual(await servers.ended(), { exitCode: 0, signal: null })
    assert.doesNotMatch(servers.stdout() + servers.stderr(), /"level":"error"/)
    const patients = gunzipSync(readFileSync(join(place.folder, 'out', 'Patient.ndjson.gz'))).toString()
    assert.match(patients, /"id":"imported"/)
  })
})
