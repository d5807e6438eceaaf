import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import type { CommandContext, CommandRequest } from '../../auth/index.ts'
import { FOR_TESTS, type Settings } from '../../config/index.ts'
import { HOW, isFailure, isRecord } from '../../core/index.ts'
import type { Resource } from '../../fhir/index.ts'
import type { Sealer, Store } from '../../store/index.ts'
import {
  type Arguments,
  type Command,
  CommandFailure,
  getOptional,
  getRequired,
  type Io,
  isSet,
} from '../command.ts'
import { findOperator } from '../operator.ts'
import { requireDeveloperTools } from '../require-developer-tools.ts'
import { findDataFile, loadSettings, noteNewFolder, openAuditor, withSealer } from '../with-store.ts'

const commonUsage = `\
  --client <id>       a registered app
  --patient <id>      the patient of the launch context
  --encounter <id>    the encounter of the launch context
  --user <username>   the user who launches the app (default: clinician)`

const TESTS_ONLY = `${FOR_TESTS} The audit trail names the command line.`

const token: Command = {
  usage: `
Usage: ${HOW} token --client <id> [--patient <id>] [--scope "<scopes>"] [--encounter <id>] [--user <username>]

Prints an access token, as if the user had launched the app and allowed all scopes that can be granted to it. The token
cannot be refreshed. ${TESTS_ONLY}

Options:
${commonUsage}
  --scope "<scopes>"  scopes to grant (default: the registered scopes of the app); those that cannot be granted are listed
                      on standard error

Example:
  token=$(${HOW} token --client my-app --patient patient-1 --scope "patient/Observation.rs")
  curl -H "Authorization: Bearer $token" http://localhost:8080/fhir/Observation`,
  async run(args, io) {
    const scope = getOptional(args, 'scope')
    const { loadTestCommands } = await import('../../auth/index.ts')
    const { issueTokenByCommand } = await loadTestCommands()
    const request = { ...(await readRequest(args)), scope }
    const issued = await withCommandContext(io, request, context => issueTokenByCommand(context, request))
    if (isFailure(issued)) throw new CommandFailure(`Cannot issue token: ${issued.description}`)
    noteMissing(scope, issued.scope, io)
    io.stdout.write(`${issued.access_token}\n`)
    return 0
  },
}

const launch: Command = {
  usage: `
Usage: ${HOW} launch --client <id> --patient <id> [--encounter <id>] [--user <username>] [--open]

Prints a link that launches the app for the patient, as the portal does. It works once, within 5 minutes. The user signs in
when the app asks for authorization. ${TESTS_ONLY}

Options:
${commonUsage}
  --open              also open the link in the browser ($BROWSER, or the default browser)

Example:
  ${HOW} launch --client my-app --patient patient-1 --open`,
  async run(args, io) {
    const { loadTestCommands } = await import('../../auth/index.ts')
    const { issueLaunchByCommand } = await loadTestCommands()
    const request = await readRequest(args)
    const link = await withCommandContext(io, request, context => issueLaunchByCommand(context, request))
    if (isFailure(link)) throw new CommandFailure(`Cannot launch: ${link.description}`)
    io.stdout.write(`${link}\n`)
    if (isSet(args, 'open')) await openInBrowser(link, io)
    return 0
  },
}

async function readRequest(args: Arguments): Promise<CommandRequest> {
  const { TEST_CLINICIAN } = await import('../../auth/index.ts')
  return {
    clientId: getRequired(args, 'client'),
    username: getOptional(args, 'user') ?? TEST_CLINICIAN.username,
    patientId: getOptional(args, 'patient'),
    encounterId: getOptional(args, 'encounter'),
  }
}

async function withCommandContext<T>(
  io: Io,
  request: CommandRequest,
  use: (context: CommandContext) => Promise<T>,
): Promise<T> {
  const settings = loadSettings(io)
  requireDeveloperTools(settings, 'do this')
  noteNewFolder(settings, io)
  await checkSubject(settings, request)
  return withSealer(settings, async (store, sealer) => {
    await initializeOnce(settings, store, sealer)
    const { makeRules } = await import('../../auth/index.ts')
    const rules = makeRules(settings, () => settings.login)
    return use({
      settings,
      store,
      sealer,
      audit: openAuditor(settings, store),
      clock: Date.now,
      rules,
      operator: findOperator(io),
    })
  })
}

/** Creates the first keys, client and clinician, unless a start has done it: its settings may differ from these. */
async function initializeOnce(settings: Settings, store: Store, sealer: Sealer): Promise<void> {
  const key = await store.db.selectFrom('signing_key').select('kid').limit(1).executeTakeFirst()
  if (key) return
  const { initialize } = await import('../../auth/index.ts')
  await initialize({ settings, store, sealer })
}

/**
 * Finds a mistyped id early, in the data of the embedded server. Other FHIR servers are not asked for it: they decide every
 * request anyway.
 */
async function checkSubject(settings: Settings, { patientId, encounterId }: CommandRequest): Promise<void> {
  if (settings.fhir.upstreamUrl !== undefined) return
  const file = findDataFile(settings)
  if (!existsSync(file)) return
  const { openRepository, parseContent } = await import('../../backends/sqlite/index.ts')
  const repository = openRepository({ file, baseUrl: settings.fhirBaseUrl })
  try {
    const find = (type: string, id: string | undefined) => {
      const stored = id === undefined ? undefined : repository.find(type, id)
      return stored?.deleted === false ? parseContent(stored) : undefined
    }
    const missing =
      patientId !== undefined && !find('Patient', patientId)
        ? `Patient/${patientId}`
        : encounterId !== undefined && !isOfPatient(find('Encounter', encounterId), patientId)
          ? `Encounter/${encounterId} of this patient`
          : undefined
    // The file may be of an earlier start, before another server took its place.
    if (missing !== undefined && !(await isAnotherServer(settings.fhirBaseUrl)))
      throw new CommandFailure(
        `Cannot find ${missing} in ${file}. If another FHIR server serves ${settings.fhirBaseUrl}, start it first.`,
      )
  } finally {
    repository.close()
  }
}

const METADATA_MS = 2_000

/** Whether a server responds, and its CapabilityStatement, which needs no token, is not that of the embedded server. */
async function isAnotherServer(fhirBaseUrl: string): Promise<boolean> {
  const signal = AbortSignal.timeout(METADATA_MS)
  const response = await fetch(`${fhirBaseUrl}/metadata`, { signal }).catch(() => undefined)
  if (!response) return false
  const statement: unknown = await response.json().catch(() => undefined)
  return !(isRecord(statement) && isRecord(statement.software) && statement.software.name === 'Sallyport')
}

function isOfPatient(encounter: Resource | undefined, patientId: string | undefined): boolean {
  const subject = encounter?.subject
  return isRecord(subject) && subject.reference === `Patient/${patientId}`
}

function noteMissing(requested: string | undefined, granted: string, io: Io): void {
  const known = new Set(granted.split(' '))
  const missing = (requested ?? '').split(' ').filter(scope => scope !== '' && !known.has(scope))
  if (missing.length > 0)
    io.stderr.write(`Not granted as requested: ${missing.join(' ')}; granted: ${granted}\n`)
}

const OPENERS: Readonly<Record<string, string>> = { darwin: 'open', win32: 'explorer' }

async function openInBrowser(link: string, { env, stderr }: Io): Promise<void> {
  const program = env.BROWSER || OPENERS[process.platform] || 'xdg-open'
  const browser = spawn(program, [link], { detached: true, stdio: 'ignore' })
  await new Promise<void>(resolve => {
    browser.once('spawn', resolve)
    browser.once('error', error => {
      stderr.write(
        `Cannot open the browser (${error.message}): open the link yourself, or name a browser in BROWSER\n`,
      )
      resolve()
    })
  })
  browser.unref()
}

export const commands = { token, launch }
