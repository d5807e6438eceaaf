import { setTimeout } from 'node:timers/promises'
import type { Configuration, Settings } from '../../config/index.ts'
import { readConfiguration, SettingsError } from '../../config/index.ts'
import { createLogger, version } from '../../web/index.ts'
import type { Command } from '../command.ts'
import { formatColumns } from '../command.ts'
import type { TestLogin } from '../start/auth.ts'
import { readFiles } from '../start/files.ts'
import { chooseServers, endAtUnexpected, type ServerName } from '../start/parts.ts'
import { startServers } from '../start/start-servers.ts'
import { startWorkers } from '../start/supervisor.ts'

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

/** A request that has arrived but is not yet read counts as running. */
const ARRIVING_MS = 100

export const start: Command = {
  usage: `
Usage: npm start [-- auth|fhir|app …]

Without names, starts the auth server, the FHIR server and the app server, with an embedded database and sample patients.
With names, starts only those servers, as on separate hosts. The servers call each other over HTTP. They run in one process, or
in as many as SMART_WORKERS sets.
On SIGTERM or Ctrl-C the servers finish running requests and exit with code 0.

To see the settings in effect: npm run -s sallyport -- settings`,
  options: {},
  positionals: { min: 0, max: 3 },
  async run(args, io) {
    const names = chooseServers(args.positionals)
    const configuration = readConfiguration(io.env, io.cwd)
    const { warnings, startWarnings } = configuration
    for (const warning of [...warnings, ...startWarnings]) io.stderr.write(`${warning}\n`)
    if (configuration.problems.length > 0)
      throw new SettingsError(configuration.problems.map(problem => `Cannot start: ${problem}`))
    const { settings } = configuration
    const parts = {
      names,
      settings,
      files: readFiles(settings, names.includes('fhir')),
      logger: createLogger({ level: settings.logLevel }),
    }
    endAtUnexpected(parts.logger)
    const stopped = stopSignal(
      process,
      () => process.exit(1),
      () => performance.now(),
    )
    const tell = (line: string) => io.stdout.write(`${line}\n`)
    const running = await (settings.workers === 1 ? startServers(parts, tell) : startWorkers(parts, tell))
    io.stdout.write(formatBanner(configuration, names, running.testLogin))
    await stopped
    io.stdout.write('Stopping: running requests finish first.\n')
    running.drain()
    await setTimeout(Math.max(ARRIVING_MS, settings.drainDelaySeconds * 1000))
    await running.close()
    io.stdout.write('Stopped.\n')
    return 0
  },
}

/** What a start prints: the URLs, the test login and how to stop (START-1). */
export function formatBanner(
  { settings, sources }: Configuration,
  names: readonly ServerName[],
  testLogin: TestLogin | undefined,
): string {
  const addresses = {
    auth: [
      ['Portal', `${settings.issuerUrl}/portal`],
      ['Auth server', settings.issuerUrl],
    ],
    fhir: fhirRows(settings),
    app: [['App server', settings.appUrl]],
  } satisfies Record<ServerName, readonly (readonly string[])[]>
  const login = testLogin
    ? [
        [
          'Test login',
          loginText(testLogin, sources.get('seedClinicianPassword') !== 'default', settings.onLoopback),
        ],
      ]
    : []
  const workers = settings.workers === 1 ? [] : [['Workers', String(settings.workers)]]
  const rows = [...names.flatMap(name => addresses[name]), ...workers, ...login]
  return `Sallyport ${version} is running. Stop it with Ctrl-C.

${formatColumns(rows.map(([title = '', text = '']) => [`  ${title}`, text]))}

`
}

function fhirRows({ fhir, fhirBaseUrl }: Settings): readonly (readonly string[])[] {
  const { upstreamUrl, policyFile } = fhir
  return [
    [upstreamUrl === undefined ? 'FHIR server' : 'Gateway', fhirBaseUrl],
    ...(upstreamUrl === undefined ? [] : [['  in front of', upstreamUrl]]),
    ...(policyFile === undefined ? [] : [['  by policy', policyFile]]),
  ]
}

function loginText(
  { username, password, seeded }: TestLogin,
  passwordIsSet: boolean,
  onLoopback: boolean,
): string {
  if (passwordIsSet) return `${username}, with the password from SMART_SEED_CLINICIAN_PASSWORD`
  if (onLoopback) return `${username} / ${password}`
  return seeded ? `${username} / ${password} (shown only once)` : username
}
