/** Runs the commands that the guides print, page by page, with the program under test. */
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { cpSync, mkdirSync, writeFileSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { startUpstream, type Upstream } from '../../examples/upstream.ts'
import { freePorts } from '../support/free-ports.ts'
import { isSetting, type PrintedCommand, readGuides } from '../support/guide-commands.ts'
import { PROGRAM } from '../support/program.ts'
import {
  newPlace,
  type Place,
  PROCESS_ENV,
  runProgram,
  type Started,
  startProcess,
} from '../support/started.ts'

/** Commands that are not run here, and why. */
const ELSEWHERE: readonly (readonly [command: RegExp, reason: string])[] = [
  [/^npm |^npx (sallyport-<|--package)/, 'the installation is a journey of its own'],
  [/^(docker|kubectl|helm|openssl) /, 'for the image and the chart'],
  [/^(systemctl|sudo|useradd|chown|chmod|install) /, 'changes the machine'],
  [/\/opt\/sallyport\//, 'the place of a service'],
  [/\/etc\/systemd\/system|^sed /, 'test/docs.test.ts makes the units'],
  [/^(pip|python) /, 'Python'],
  [/^node |fhirclient/, 'the example apps have tests of their own'],
  [/^(pg_dump|pg_restore) /, 'needs PostgreSQL with TLS'],
  [/^(umask|sqlite3|cp) .*(backup|data)/, 'test/operations.test.ts restores a backup'],
  [/^rm -r data$/, 'there is no such folder'],
  [/<command>|--follow|--open/, 'does not end, or opens a browser'],
  [/REFRESH_TOKEN|OTHER_TOKEN/, 'needs a token of an app'],
  [/…/, 'needs an id that an earlier command printed'],
  [/respond-async|STATUS_URL|FILE_URL/, 'needs a token of a backend service, and URLs that a response names'],
  [/^(git clone|cd onc-|cp \.\.\/sallyport\.json|run\b|\}$)/, 'the certification kit, in containers'],
  [/localhost:3000\/fhir/, 'the server of the reader'],
  [
    /FREE_PORT|FHIR_URL|^TOKEN=\$\(npx|^set -euo|^echo "The app can/,
    'the script ci/test.sh, which start --run runs',
  ],
  [
    /^npx sallyport (client add --id my-app|start auth app|client add --id my-server)|patient 1\)$/,
    'the server of the reader',
  ],
]

const ADD_APP =
  'sallyport client add --id my-app --public --redirect-uri http://localhost:3000/callback --scope "launch patient/*.rs"'

/** Commands without which the page cannot be followed. */
const BEFORE: Readonly<Record<string, string>> = {
  'docs/how-to/administration.md':
    'echo "correct horse battery staple" | sallyport clinician add --username ada --display-name Ada --fhir-user practitioner-2',
  'docs/how-to/sign-in.md':
    'echo "correct horse battery staple" | sallyport clinician add --username ada --display-name Ada --fhir-user practitioner-2',
  'docs/how-to/lab.md': ADD_APP,
  'docs/how-to/compromised.md': ADD_APP,
  'docs/refresh-tokens.md': ADD_APP,
}

/** Commands that say no, with the exit code that the documentation names. */
const REFUSES: readonly (readonly [command: RegExp, exitCode: number])[] = [
  [/^sallyport explain --method POST/, 3],
  [/^sallyport login explain/, 1],
  [/^sallyport upgrade check/, 3],
]

const TOOLS = ['bash', 'curl', 'jq']
const missing = TOOLS.filter(tool => spawnSync(tool, ['--version']).status !== 0)
if (missing.length > 0)
  process.stderr.write(`NOT RUN: the commands of the guides, without ${missing.join(', ')}\n`)

describe('the commands of the guides', { skip: missing.length > 0 }, () => {
  let template: Place
  let upstream: Upstream
  const started: Started[] = []
  const places: Place[] = []

  before(async () => {
    const [port = 0] = await freePorts(1)
    upstream = await startUpstream(port, 1)
    template = await newPlace()
    const servers = startProcess(['start'], template)
    await servers.printed(/is running/)
    servers.child.kill('SIGTERM')
    await servers.ended()
  })
  after(async () => {
    for (const { child } of started) child.kill('SIGKILL')
    for (const place of [template, ...places]) place?.remove()
    await upstream?.close()
  })

  const starts = new Set<string>()
  /** The same start of the servers is tried once. */
  const isRepeated = (line: string) => {
    if (!/\bsallyport start\b/.test(line)) return false
    const known = starts.has(line)
    starts.add(line)
    return known
  }

  for (const [page, blocks] of readGuides()) {
    const commands = blocks
      .flat()
      .filter(({ line }) => !isSetting(line) && !isElsewhere(line) && !isRepeated(line))
    if (commands.length === 0) continue
    it(`${page} (${commands.length})`, async () => {
      const place = await newPlace()
      places.push(place)
      cpSync(join(template.folder, 'data'), join(place.folder, 'data'), { recursive: true })
      writeFiles(place.folder, blocks)
      const needsServers = commands.some(({ line }) => /\b(curl|api) /.test(line))
      if (needsServers) {
        const servers = startProcess(['start'], place)
        started.push(servers)
        await servers.printed(/is running/)
      }
      const script = [BEFORE[page] ?? '', ...commands.map(writeStep)].join('\n')
      const shell = spawn('bash', ['-c', adapt(`exec 2>&1; set -eo pipefail\n${script}`, place)], {
        cwd: place.folder,
        stdio: ['ignore', 'pipe', 'inherit'],
        env: {
          ...PROCESS_ENV,
          ...place.env,
          HOME: place.folder,
          PATH: `${join(place.folder, 'bin')}${delimiter}${PROCESS_ENV.PATH}`,
          ...(needsServers && { SERVERS_RUN: 'true' }),
        },
      })
      let output = ''
      shell.stdout.on('data', chunk => {
        output += chunk
      })
      const [status] = await once(shell, 'close')
      assert.equal(status, 0, output.slice(-2000))
    })
  }

  it('has settings that the servers know', async () => {
    for (const [page, blocks] of readGuides()) {
      const lines = blocks.flat().flatMap(({ line }) => (isSetting(line) ? [line] : []))
      if (lines.length === 0) continue
      const env = Object.fromEntries(
        lines.map(line => [
          line.split('=', 1)[0],
          line.slice(line.indexOf('=') + 1).replace(/^['"]|['"]$/g, ''),
        ]),
      )
      const { stderr } = await runProgram(['settings'], { ...template, env: { ...template.env, ...env } })
      assert.doesNotMatch(stderr, /unknown|Unknown/, page)
    }
  })

  /** The ports and folders of the test instead of those of the page. */
  function adapt(script: string, place: Place): string {
    const { port } = new URL(place.appUrl)
    return script
      .replaceAll('http://localhost:9000', place.authUrl)
      .replaceAll('http://localhost:8080/fhir', place.fhirUrl)
      .replaceAll('http://localhost:8080', new URL(place.fhirUrl).origin)
      .replaceAll(/http:\/\/(localhost:8888|127\.0\.0\.1:8090)\/fhir/g, upstream.url)
      .replaceAll('SMART_APP_PORT=8181', `SMART_APP_PORT=${port}`)
      .replaceAll('/tmp/trial', join(place.folder, 'trial'))
      .replaceAll('<id>', 'my-app')
      .replaceAll('<launch id>', '00000000-0000-4000-8000-000000000000')
  }
})

function isElsewhere(line: string): boolean {
  return ELSEWHERE.some(([command]) => command.test(line))
}

/** Says what it runs, so that a failure shows it. */
function writeStep({ line, status }: PrintedCommand): string {
  const said = `echo ${quote(`$ ${line}`)}`
  const [, exitCode] = REFUSES.find(([command]) => command.test(line)) ?? []
  if (exitCode !== undefined) return `${said}\n{ ${line}; } || test $? -eq ${exitCode}`
  // At a terminal, these ask.
  if (/^sallyport clinician add (?!.*--activation-link)/.test(line))
    return `${said}\necho 'correct horse battery staple' | ${line}`
  if (line === 'sallyport data reset') return `${said}\n${line} --yes`
  // The secret is printed once, and the next command needs it.
  if (line.includes('--id console')) return `${said}\nSECRET=$(${line} | sed -n 's/^client_secret: //p')`
  if (status === undefined) return `${said}\n${line}`
  return `${said}\ntest "$(${line.replace(/^curl( -i)?/, "curl -s -o /dev/null -w '%{http_code}'")})" = ${status}`
}

function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}

/** A server that is started is stopped as soon as it runs: by the reader with Ctrl-C, and here by this command. */
const COMMAND = `#!${process.execPath}
const { spawn } = require('node:child_process')
// A script that the program runs finds these commands too, also if the program has a PATH of its own.
const [file, ...words] = ${JSON.stringify(PROGRAM)}.map(word => word.replace(/^PATH=/, '$&' + __dirname + ':'))
const args = process.argv.slice(2).filter((arg, at) => at > 0 || arg !== 'sallyport')
const isServer = args[0] === 'start' && !args.includes('--run')
// The ports of the page are in use.
if (isServer && process.env.SERVERS_RUN && !args.includes('--ephemeral')) args.push('--ephemeral')
const child = spawn(file, [...words, ...args], { stdio: ['inherit', isServer ? 'pipe' : 'inherit', 'inherit'] })
child.stdout?.on('data', text => {
  if (/is running/.test(text)) child.kill('SIGTERM')
})
child.on('close', code => process.exit(code ?? 1))
`

/** What the pages have the reader write, and the command `sallyport`. */
function writeFiles(folder: string, blocks: readonly (readonly PrintedCommand[])[]): void {
  const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-384' })
  const key = { ...publicKey.export({ format: 'jwk' }), kid: 'reports-2026', alg: 'ES384', use: 'sig' }
  const patient = { resourceType: 'Patient', id: 'guide-1', name: [{ family: 'Guide', given: ['Ada'] }] }
  const script = blocks.find(([first]) => first?.line.startsWith('set -euo')) ?? []
  const files = {
    'bin/sallyport': COMMAND,
    'bin/npx': COMMAND,
    'package.json': JSON.stringify({ scripts: { test: 'true' } }),
    'patients.ndjson': `${JSON.stringify(patient)}\n`,
    'export/Patient.ndjson': `${JSON.stringify(patient)}\n`,
    '../reports/jwks.json': JSON.stringify({ keys: [key] }),
    'claims.json': JSON.stringify({ sub: 'unknown', preferred_username: 'unknown' }),
    'policy.yaml': 'rules:\n  - clinicians: all\n    patients: all\n',
    'ci/test.sh': script.map(({ line }) => `${line}\n`).join(''),
  }
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), content, { mode: 0o755 })
  }
}
