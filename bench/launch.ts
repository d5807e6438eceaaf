/**
 * `node bench/launch.ts [launches]`: the CPU time of the servers (`sallyport start`, embedded FHIR server, audit on) for a
 * launch and for an authorization, and their memory after 100 and after all launches (3,000 unless stated). The password
 * is checked once, before: its cost is bcrypt's and not included.
 *
 * - `launch`: from the choice of the patient in the portal to the page of the demo app, in a browser without a session.
 * - `authorize`: the sign-in page for a browser without login; with login, picker, consent and code of a third-party app.
 *
 * The limits are multiples of the cryptography of a code exchange, which is measured in each round: milliseconds would be
 * those of one machine.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { readForm } from '../src/auth/testing/read-form.ts'
import { computeChallenge, VERIFIER } from '../src/auth/testing/test-auth-server.ts'
import { HttpUser, type Visited } from '../test/support/http-user.ts'
import { newPlace } from '../test/support/started.ts'
import { measureCryptography } from './auth/signatures.ts'
import { isQuick } from './shared/compare.ts'
import { reportValues, takeMedian } from './shared/report.ts'

const LAUNCHES = Number(process.argv[2] ?? (isQuick ? 300 : 3_000))
const FIRST = 100
/** The compiler has optimized the code by then. */
const WARM = isQuick ? 50 : 500
/** They are spread over all launches, because other load on the machine comes and goes. */
const ROUNDS = 10
const CALLBACK = 'https://bench.example/callback'
const SCOPE = 'launch/patient openid fhirUser offline_access patient/Patient.rs patient/Observation.rs'
const MAIN = join(import.meta.dirname, '../src/cli/main.ts')
const { scripts } = JSON.parse(readFileSync(join(import.meta.dirname, '../package.json'), 'utf8'))
/** The environment and the flags of `npm start`. */
const [, variable = '', value = '', flags = ''] = /^(\w+)=(\S+) exec node (.*) src/.exec(scripts.start) ?? []

interface Usage {
  readonly cpu: number
  readonly rss: number
  readonly heapUsed: number
}

const place = await newPlace({ SMART_SAMPLE_PATIENTS: '60' })
const env = { ...place.env, PATH: process.env.PATH, HOME: place.folder, [variable]: value }
const app = ['--id', 'bench', '--public', '--redirect-uri', CALLBACK, '--scope', SCOPE]
await once(fork(MAIN, ['client', 'add', ...app], { env, silent: true }), 'exit')
const servers = fork(MAIN, ['start'], {
  env,
  stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  execArgv: [...flags.split(' '), '--import', join(import.meta.dirname, 'launch/report-usage.ts')],
})
await waitUntilReady(`${place.authUrl}/readyz`, servers)

const visited: Visited = {
  settings: { issuerUrl: place.authUrl, appUrl: place.appUrl },
  user: { username: 'clinician', password: 'sallyport', name: '' },
}
const user = new HttpUser(visited)
await user.signIn()
const { cookie: login } = user
const portal = await (await user.open(`${place.authUrl}/portal`)).text()
const patients = [...portal.matchAll(/[?&;]patient=([\w-]+)/g)].map(([, id]) => id ?? '')
const [patientId = ''] = patients

const firstMs = await measureCpu(launch, FIRST)
const first = await askUsage('usage')
const settled = await askUsage('heap')
for (let at = 0; at < WARM; at++) await authorize()
for (let at = FIRST; at < WARM; at++) await launch()
interface Round {
  readonly launchMs: number
  readonly authorizeMs: number
  readonly signaturesMs: number
}
const rounds: Round[] = []
for (let launches = WARM; launches < LAUNCHES; launches += LAUNCHES / ROUNDS) {
  rounds.push({
    launchMs: await measureCpu(launch, 40),
    authorizeMs: await measureCpu(authorize, 40),
    signaturesMs: measureCryptography().code / 1000,
  })
  for (let at = 40; at < LAUNCHES / ROUNDS; at++) await launch()
}
const last = await askUsage('usage')
const after = await askUsage('heap')
servers.kill('SIGTERM')
await once(servers, 'exit')
place.remove()

await reportValues([
  { measured: `launch: CPU, first ${FIRST} (ms)`, value: firstMs },
  { measured: 'launch: CPU (ms)', value: Math.min(...rounds.map(it => it.launchMs)) },
  { measured: 'launch: CPU (signatures of a code)', value: countSignatures(it => it.launchMs), most: 19.5 },
  { measured: 'authorization: CPU (ms)', value: Math.min(...rounds.map(it => it.authorizeMs)) },
  {
    measured: 'authorization: CPU (signatures of a code)',
    value: countSignatures(it => it.authorizeMs),
    most: 12.3,
  },
  { measured: `RSS after ${FIRST} launches (MB)`, value: first.rss / 1e6, most: 250 },
  { measured: `RSS after ${LAUNCHES} launches (MB)`, value: last.rss / 1e6, most: 250 },
  {
    measured: `growth of the heap in ${LAUNCHES} launches (MB)`,
    value: (after.heapUsed - settled.heapUsed) / 1e6,
    most: 12,
  },
])

function countSignatures(read: (round: Round) => number): number {
  return takeMedian(rounds.map(it => read(it) / it.signaturesMs))
}

async function waitUntilReady(url: string, child: ChildProcess): Promise<void> {
  while (child.exitCode === null) {
    const isReady = await fetch(url).then(
      ({ status }) => status === 200,
      () => false,
    )
    if (isReady) return
    await pause(200)
  }
  throw new Error('Cannot bench: the servers did not start')
}

async function askUsage(about: 'usage' | 'heap'): Promise<Usage> {
  servers.send(about)
  const [usage] = await once(servers, 'message')
  return usage
}

/** The CPU time of the servers, in milliseconds. */
async function measureCpu(act: () => Promise<void>, times: number): Promise<number> {
  const before = await askUsage('usage')
  for (let at = 0; at < times; at++) await act()
  return ((await askUsage('usage')).cpu - before.cpu) / times / 1000
}

async function launch(): Promise<void> {
  await expectPage(await new HttpUser(visited, login).launch(patientId), 200)
}

async function authorize(): Promise<void> {
  const query = new URLSearchParams({
    response_type: 'code',
    client_id: 'bench',
    redirect_uri: CALLBACK,
    scope: SCOPE,
    state: 's',
    aud: place.fhirUrl,
    code_challenge: computeChallenge(VERIFIER),
    code_challenge_method: 'S256',
  })
  const url = `${place.authUrl}/oauth2/authorize?${query}`
  await expectPage(await new HttpUser(visited).open(url), 200)
  const picker = await expectPage(await user.open(url), 200)
  const picked = new URLSearchParams([...readForm(picker), ['patientId', patientId]])
  const consent = await expectPage(await user.open(`${place.authUrl}/oauth2/pick`, post(picked)), 200)
  const allowed = new URLSearchParams([...readForm(consent), ['decision', 'allow']])
  const code = await user.request(`${place.authUrl}/oauth2/consent`, post(allowed))
  if (!code.headers.get('location')?.startsWith(`${CALLBACK}?code=`))
    throw new Error(`Cannot bench: no code (${code.status})`)
}

function post(body: URLSearchParams): RequestInit {
  return { method: 'POST', body }
}

async function expectPage(response: Response, status: number): Promise<string> {
  const text = await response.text()
  if (response.status !== status) throw new Error(`Cannot bench: ${response.status} ${text.slice(0, 500)}`)
  return text
}
