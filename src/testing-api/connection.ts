import { isRecord } from '../core/index.ts'
import { addApp } from './add-app.ts'
import { checkOptions, checkSimulation } from './check-options.ts'
import type { Run } from './commands.ts'
import type { Connection, LaunchOptions, Problem, ProblemOptions, TokenOptions } from './types.ts'

/** Uses running servers: the environment has their URLs and settings. */
export function createConnection(env: Connection['env'], run: Run): Connection {
  const { AUTH_URL = '', FHIR_URL = '', APP_URL = '', FREE_PORT, TEST_USERS = '{}' } = env
  let firstApp = env.TEST_APP
  return {
    authUrl: AUTH_URL,
    fhirUrl: FHIR_URL,
    appUrl: APP_URL,
    freePort: Number(FREE_PORT),
    users: JSON.parse(TEST_USERS),
    get env() {
      return firstApp === undefined ? env : { ...env, TEST_APP: firstApp }
    },
    async addApp(app) {
      const added = await addApp(run, app)
      firstApp ??= added.id
      return added
    },
    token: (options = {}) => requestToken(run, options, firstApp),
    launch: (options = {}) => buildLaunch(AUTH_URL, options, firstApp),
    problems: (options = {}) => listProblems(run, options),
    run: async (...args) => (await run(args)).stdout,
  }
}

async function requestToken(run: Run, options: TokenOptions, firstApp: string | undefined): Promise<string> {
  checkOptions('token', options)
  const { app: client = firstApp, scope, patient, encounter, user } = options
  if (client === undefined) throw new Error('token: name an app, or add one with addApp')
  const given = Object.entries({ client, scope, patient, encounter, user })
  const { stdout, stderr } = await run(['token', ...formatOptions(given)], 'token')
  // A test that gets fewer scopes than it asks for would fail later, elsewhere.
  const [missing] = /^Not granted as requested.*$/m.exec(stderr) ?? []
  if (missing !== undefined) throw new Error(`token: ${missing}`)
  return stdout.trim()
}

async function listProblems(run: Run, options: ProblemOptions): Promise<readonly Problem[]> {
  checkOptions('problems', options)
  const { app, since } = options
  const given = Object.entries({ client: app, since: since instanceof Date ? since.toISOString() : since })
  const { stdout } = await run(['problems', '--json', ...formatOptions(given)], 'problems')
  return JSON.parse(stdout).items
}

function formatOptions(given: readonly (readonly [name: string, value: string | undefined])[]) {
  return given.flatMap(([name, value]) => (value === undefined ? [] : [`--${name}=${value}`]))
}

/** A link of the lab (docs/how-to/lab.md). */
async function buildLaunch(
  authUrl: string,
  options: LaunchOptions,
  firstApp: string | undefined,
): Promise<string> {
  checkOptions('launch', options)
  checkSimulation(options.simulate)
  const { app: client = firstApp, launchUrl: launch_url, signIn = false, consent = false, ...more } = options
  const given = Object.entries({ client, launch_url, ...more }).filter(([, value]) => value !== undefined)
  const url = new URL(`${authUrl}/lab/launch`)
  for (const [name, value] of given) url.searchParams.set(name, String(value))
  if (!signIn) url.searchParams.set('skip_login', '1')
  if (!consent) url.searchParams.set('skip_consent', '1')
  await checkLink(url.href)
  return url.href
}

/** Refuses a link that would not launch the app. The FHIR server need not run yet, and a browser may be allowed more. */
async function checkLink(link: string): Promise<void> {
  const response = await fetch(`${link}&check=1`)
  if (response.status !== 400 && response.status !== 404) return
  const problem: unknown = await response.json()
  const why = isRecord(problem) && problem.error_description
  throw new Error(`launch: ${why || 'the lab is off'}`)
}
