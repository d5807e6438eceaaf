import { setTimeout } from 'node:timers/promises'
import type { Configuration, Settings } from '../../config/index.ts'
import { findSecurityWarnings, readConfiguration, SettingsError } from '../../config/index.ts'
import { HOW } from '../../core/index.ts'
import { createLogger } from '../../web/http/index.ts'
import { version } from '../../web/ui/index.ts'
import { type Command, formatColumns, getOptional, type Io, isSet } from '../command.ts'
import { findOperator } from '../operator.ts'
import { findProblems, formatProblems } from '../problems.ts'
import type { TestClinician } from '../start/auth.ts'
import { type Ephemeral, findFreePorts, makeEphemeral } from '../start/ephemeral.ts'
import { readTrustedIssuers } from '../start/files.ts'
import {
  createControls,
  followLogLevel,
  LiveState,
  type ReadSettings,
  readLive,
  watchCertificates,
} from '../start/live.ts'
import {
  type AtSignal,
  chooseServers,
  endAtUnexpected,
  type PrintLine,
  type ServerName,
} from '../start/parts.ts'
import { reportCertificate } from '../start/process-metrics.ts'
import { runProgram } from '../start/run-program.ts'
import { openMetricsPort, type Running, startServers } from '../start/start-servers.ts'
import { openConfiguredStore } from '../with-store.ts'
import { startWorkers } from '../workers/supervisor.ts'

interface SignalSource {
  on(signal: 'SIGTERM' | 'SIGINT', listener: () => void): unknown
}

/** npm forwards a signal that the terminal has already sent to the whole process group. */
const SAME_STOP_MS = 1000

/**
 * Resolves at the first SIGTERM or Ctrl-C. A second signal within a second belongs to the same stop (START-5); a
 * later one ends the process at once.
 */
export function stopSignal(source: SignalSource, force: () => void, clock: () => number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  let first: number | undefined
  const listener = () => {
    if (first === undefined) {
      first = clock()
      resolve()
    } else if (clock() - first > SAME_STOP_MS) {
      force()
    }
  }
  source.on('SIGTERM', listener)
  source.on('SIGINT', listener)
  return promise
}

/** What `check` and `/admin` warn about too. Nothing on loopback. */
function warnOfSettings(settings: Settings, { stderr }: Io): void {
  for (const { text } of findSecurityWarnings(settings)) stderr.write(`Warning: ${text}\n`)
}

/** A request that has arrived but is not yet read counts as running. */
const ARRIVING_MS = 100

const start: Command = {
  usage: `
Usage: ${HOW} start [auth|fhir|app …] [--ephemeral] [--ready] [--run "<command>"]

Without names, starts the auth server, the FHIR server and the app server, with an embedded database and sample patients.
With names, starts only those servers, as on separate hosts. The servers call each other over HTTP. They run in one process, or
in as many as SMART_WORKERS sets.
On SIGTERM or Ctrl-C the servers finish running requests and exit with code 0. On SIGHUP they read the policy, the sign-in
providers, who needs a second factor, the log level and the certificates again; if anything is invalid, nothing changes.

  --ephemeral  keep all data in a temporary folder, which is removed at the end, and use free ports. Servers that are
               not started here keep the URLs of the settings. Other commands use the same data with
               SMART_CONFIG=<file>, which is printed, unless the environment names other data
  --ready      for scripts: print one JSON line on standard output when the servers can process requests, for example
               {"auth":"http://localhost:9000","fhir":"…","app":"…"},
               and everything else on standard error. Exit with a code other than 0 if they cannot within 60 s
  --run "<command>"
               for tests: run a command when the servers can process requests, with AUTH_URL, FHIR_URL and APP_URL of the servers
               in its environment, a free port for a server of its own as FREE_PORT, who can sign in as TEST_USERS
               (JSON), and SMART_CONFIG with --ephemeral. Then stop, and exit with its exit code. If it fails, print what was refused
               meanwhile and why, as the command problems does

Examples:
  ${HOW} start --ephemeral --ready
  ${HOW} start --ephemeral --run "npm test"

To see the settings in effect: ${HOW} settings`,
  positionals: { min: 0, max: 3 },
  async run(args, io) {
    const names = chooseServers(args.positionals)
    const stopped = stopSignal(
      process,
      () => process.exit(1),
      () => performance.now(),
    )
    const ephemeral = isSet(args, 'ephemeral') ? await makeEphemeral(io.env, names) : undefined
    const read = (): ReadSettings => {
      const configuration = readValid(ephemeral?.env ?? io.env, io.cwd)
      return { configuration, live: readLive(configuration.settings, names) }
    }
    const { configuration, live: initial } = read()
    const { settings, warnings, startWarnings } = configuration
    for (const warning of [...warnings, ...startWarnings]) io.stderr.write(`${warning}\n`)
    if (names.includes('auth')) warnOfSettings(settings, io)
    const program = getOptional(args, 'run')
    const forScripts = isSet(args, 'ready') || program !== undefined
    const output = forScripts ? io.stderr : io.stdout
    const printLine = (line: string) => output.write(`${line}\n`)
    const logger = createLogger({ level: settings.logLevel, ...(forScripts && { destination: io.stderr }) })
    endAtUnexpected(logger)
    const live = new LiveState(initial)
    followLogLevel(live, logger)
    const controls = createControls({ names, live, initial: configuration, read, logger })
    watchCertificates(controls)
    reportCertificate(() => live.current.tls?.cert)
    // A terminal that closes sends SIGHUP too, and then the process ends.
    const atSignal: AtSignal = { operator: findOperator(io), reload: () => controls.reload() }
    if (!io.stdin.isTTY) process.on('SIGHUP', () => void atSignal.reload())
    const trustedIssuers = names.includes('fhir') ? readTrustedIssuers(settings) : []
    const parts = {
      names,
      settings,
      trustedIssuers,
      live,
      controls,
      atSignal,
      logger,
      logsToStderr: forScripts,
      isPasswordRandom: !settings.onLoopback && !isPasswordSet(configuration),
    }
    const started = await (settings.workers === 1
      ? startServers(parts, printLine)
      : startWorkers(parts, printLine))
    const running = await openMetricsPort(settings, started)
    output.write(formatBanner(configuration, names, running.testLogin))
    if (ephemeral) printLine(`Other commands need SMART_CONFIG=${ephemeral.settingsFile}\n`)
    const missing = forScripts ? await waitUntilReady(running, stopped) : undefined
    if (missing !== undefined) printLine(`Cannot start: not ready: ${missing}`)
    else if (isSet(args, 'ready')) io.stdout.write(`${formatUrls(settings, names)}\n`)
    let exitCode = 0
    const began = Date.now()
    if (missing !== undefined) exitCode = 1
    else if (program === undefined) await stopped
    else
      exitCode = await runProgram(
        program,
        await makeProgramEnv(io, configuration, { names, ephemeral, testLogin: running.testLogin }),
        stopped,
      )
    await stop(running, settings, printLine)
    if (program !== undefined && exitCode !== 0) await printProblems(settings, began, printLine)
    return exitCode
  },
}

async function stop(running: Running, { drainDelaySeconds }: Settings, printLine: PrintLine): Promise<void> {
  printLine('Stopping: running requests finish first.')
  running.drain()
  await setTimeout(Math.max(ARRIVING_MS, drainDelaySeconds * 1000))
  await running.close()
  printLine('Stopped.')
}

function readValid(env: Io['env'], cwd: string): Configuration {
  const configuration = readConfiguration(env, cwd)
  const { problems } = configuration
  if (problems.length > 0) throw new SettingsError(problems.map(problem => `Cannot start: ${problem}`))
  return configuration
}

const READY_MS = 60_000
const READY_PAUSE_MS = 100

/** Undefined as soon as all servers are ready; otherwise the reason why they are not. */
async function waitUntilReady(
  { checkReadiness }: Running,
  stopped: Promise<void>,
): Promise<string | undefined> {
  const end = performance.now() + READY_MS
  for (;;) {
    const isStopped = await Promise.race([setTimeout(READY_PAUSE_MS, false), stopped.then(() => true)])
    if (isStopped) return 'stopped by a signal'
    const missing = (await checkReadiness()).filter(({ ok }) => !ok)
    if (missing.length === 0) return undefined
    if (performance.now() > end) return missing.map(({ name, reason }) => `${name}: ${reason}`).join('; ')
  }
}

/** The line for scripts (START-11). */
function formatUrls({ issuerUrl, fhirBaseUrl, appUrl }: Settings, names: readonly ServerName[]): string {
  const urls = { auth: issuerUrl, fhir: fhirBaseUrl, app: appUrl }
  return JSON.stringify(Object.fromEntries(names.map(name => [name, urls[name]])))
}

const URL_VARIABLES = [
  ['auth', 'issuerUrl', 'AUTH_URL'],
  ['fhir', 'fhirBaseUrl', 'FHIR_URL'],
  ['app', 'appUrl', 'APP_URL'],
] as const

interface ForProgram {
  readonly names: readonly ServerName[]
  readonly ephemeral: Ephemeral | undefined
  readonly testLogin: TestClinician | undefined
}

/** The environment of a program that uses these servers, and those elsewhere that the settings name (START-13). */
async function makeProgramEnv(
  { env }: Io,
  { settings, sources }: Configuration,
  { names, ephemeral, testLogin }: ForProgram,
): Promise<Io['env']> {
  const known = URL_VARIABLES.filter(([name, key]) => names.includes(name) || sources.get(key) !== 'default')
  const [freePort] = await findFreePorts(1)
  return {
    // Variables of the caller, such as SMART_DATA_DIR, would lead other commands to the caller's data.
    ...(ephemeral?.env ?? env),
    ...Object.fromEntries(known.map(([, key, variable]) => [variable, settings[key]])),
    FREE_PORT: String(freePort),
    TEST_USERS: JSON.stringify(testLogin ? listUsers(testLogin, settings) : {}),
    ...(ephemeral && { SMART_CONFIG: ephemeral.settingsFile }),
  }
}

/** Who can sign in, by role (START-13). */
function listUsers({ username, password, samples }: TestClinician, { onLoopback }: Settings) {
  const users = [{ kind: 'Clinician', username }, ...(onLoopback ? samples : [])]
  return Object.fromEntries(
    users.map(user => [user.kind.toLowerCase(), { username: user.username, password }]),
  )
}

/** Why the program may have failed (START-14). */
async function printProblems(settings: Settings, since: number, printLine: PrintLine): Promise<void> {
  await using store = await openConfiguredStore(settings)
  const problems = await findProblems(settings, store, { since })
  if (problems.length > 0) printLine(`\nProblems while the command ran:\n${formatProblems(problems)}`)
}

function isPasswordSet({ sources }: Pick<Configuration, 'sources'>): boolean {
  return sources.get('seedClinicianPassword') !== 'default'
}

/** What a start prints: the URLs, the test login and how to stop (START-1). */
export function formatBanner(
  { settings, sources }: Configuration,
  names: readonly ServerName[],
  testLogin: TestClinician | undefined,
): string {
  const addresses = {
    auth: [
      ['Portal', `${settings.issuerUrl}/portal`],
      ['Auth server', settings.issuerUrl],
    ],
    fhir: listFhirRows(settings),
    app: [['App server', settings.appUrl]],
  } satisfies Record<ServerName, readonly (readonly string[])[]>
  const login = testLogin ? listLoginRows(testLogin, isPasswordSet({ sources }), settings.onLoopback) : []
  const { workers, metrics } = settings
  const rows = [
    ...names.flatMap(name => addresses[name]),
    ...(metrics.port === undefined ? [] : [['Metrics', `port ${metrics.port}, /metrics`]]),
    ...(workers === 1 ? [] : [['Workers', String(workers)]]),
    ...login,
  ]
  return `Sallyport ${version} is running. Stop it with Ctrl-C.

${formatColumns(rows.map(([title = '', text = '']) => [`  ${title}`, text]))}

`
}

function listFhirRows({ fhir, fhirBaseUrl }: Settings): readonly (readonly string[])[] {
  const { upstreamUrl, policyFile } = fhir
  return [
    [upstreamUrl === undefined ? 'FHIR server' : 'Gateway', fhirBaseUrl],
    ...(upstreamUrl === undefined ? [] : [['  in front of', upstreamUrl]]),
    ...(policyFile === undefined ? [] : [['  by policy', policyFile]]),
  ]
}

/** Sample accounts exist on loopback only. */
function listLoginRows(login: TestClinician, passwordIsSet: boolean, onLoopback: boolean) {
  const samples = onLoopback ? login.samples : []
  return [
    ['Test login', describeLogin(login, passwordIsSet, onLoopback)],
    ...samples.map(({ kind, username }) => [
      `${kind} login`,
      describeLogin({ ...login, username }, passwordIsSet, onLoopback),
    ]),
  ]
}

function describeLogin(
  { username, password, seeded }: TestClinician,
  passwordIsSet: boolean,
  onLoopback: boolean,
): string {
  if (passwordIsSet) return `${username}, with the password from SMART_SEED_CLINICIAN_PASSWORD`
  if (onLoopback) return `${username} / ${password}`
  return seeded ? `${username} / ${password} (shown only once)` : username
}

export const commands = { start }
