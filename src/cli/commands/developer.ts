import { existsSync } from 'node:fs'
import type { AuthRefusal, CommandContext, CommandRequest } from '../../auth/index.ts'
import type { Repository } from '../../backends/sqlite/index.ts'
import { FOR_TESTS, type Settings } from '../../config/index.ts'
import { HOW, isFailure, isRecord } from '../../core/index.ts'
import type { Resource } from '../../fhir/index.ts'
import type { Sealer, Store } from '../../store/index.ts'
import {
  type Arguments,
  type Command,
  CommandFailure,
  failMissing,
  failMisuse,
  getOptional,
  type Io,
  isSet,
} from '../command.ts'
import { openInBrowser } from '../open-in-browser.ts'
import { findOperator } from '../operator.ts'
import { requireDeveloperTools } from '../require-developer-tools.ts'
import {
  loadSettings,
  nameDataFile,
  noteNewFolder,
  openAuditor,
  performCommand,
  withSealer,
} from '../with-store.ts'

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
    const token = await issueToken(args, io, { scope: getOptional(args, 'scope') })
    io.stdout.write(`${token}\n`)
    return 0
  },
}

/** Issues an access token for the client, patient and user that the options name. */
export async function issueToken(
  args: Arguments,
  io: Io,
  asked: { readonly scope: string | undefined; readonly resource?: string },
): Promise<string> {
  const { loadTestCommands } = await import('../../auth/index.ts')
  const { issueTokenByCommand } = await loadTestCommands()
  const request = { ...(await readRequest(args, io)), ...asked }
  const issued = await withCommandContext(io, request, context => issueTokenByCommand(context, request))
  if (isFailure(issued)) throw await describeRefusal('Cannot issue token', issued, io)
  noteMissing(asked.scope, issued.scope, io)
  return issued.access_token
}

const launch: Command = {
  usage: `
Usage: ${HOW} launch --client <id> --patient <id> [--encounter <id>] [--user <username>]
         [--simulate <error>] [--open]

Prints a link that launches the app for the patient, as the portal does. It works once, within 5 minutes. The user signs in
when the app asks for authorization. ${TESTS_ONLY}

Options:
${commonUsage}
  --simulate <error>  an error of this launch, by its name in the lab (below)
  --open              also open the link in the browser ($BROWSER, or the default browser)

Errors at the redirect URI:
  authorize:invalid_request, authorize:unauthorized_client, authorize:access_denied, authorize:unsupported_response_type,
  authorize:invalid_scope, authorize:server_error, authorize:temporarily_unavailable, authorize:interaction_required,
  authorize:login_required, authorize:consent_required
Errors of the token request:
  token:invalid_request, token:invalid_client, token:invalid_grant, token:unauthorized_client, token:unsupported_grant_type,
  token:invalid_scope, token:500, token:slow
Errors of every refresh:
  refresh:invalid_request, refresh:invalid_client, refresh:invalid_grant, refresh:unauthorized_client,
  refresh:unsupported_grant_type, refresh:invalid_scope
Errors of every FHIR request:
  access-token:expired, access-token:bad-signature, fhir:401, fhir:403, fhir:429, fhir:500, fhir:slow

Examples:
  ${HOW} launch --client my-app --patient patient-1 --open
  ${HOW} launch --client my-app --patient patient-1 --simulate token:invalid_grant`,
  async listValues() {
    const { loadTestCommands } = await import('../../auth/index.ts')
    return { simulate: (await loadTestCommands()).SIMULATIONS }
  },
  async run(args, io) {
    const { loadTestCommands } = await import('../../auth/index.ts')
    const { issueLaunchByCommand, isSimulation, suggestSimulation } = await loadTestCommands()
    const simulate = getOptional(args, 'simulate')
    if (simulate !== undefined && !isSimulation(simulate)) {
      const meant = suggestSimulation(simulate)
      throw failMisuse(
        `Unknown --simulate ${simulate}${meant === undefined ? `: see ${args.help}` : `, did you mean ${meant}?`}`,
      )
    }
    const request = { ...(await readRequest(args, io)), simulate }
    const link = await withCommandContext(io, request, context => issueLaunchByCommand(context, request))
    if (isFailure(link)) throw await describeRefusal('Cannot launch', link, io)
    io.stdout.write(`${link}\n`)
    if (isSet(args, 'open')) await openInBrowser(link, io)
    return 0
  },
}

async function readRequest(args: Arguments, io: Io): Promise<CommandRequest> {
  const { TEST_CLINICIAN } = await import('../../auth/index.ts')
  return {
    clientId: getOptional(args, 'client') ?? failMissing(args, `--client${await suggestApps(io)}`),
    username: getOptional(args, 'user') ?? TEST_CLINICIAN.username,
    patientId: getOptional(args, 'patient'),
    encounterId: getOptional(args, 'encounter'),
  }
}

/** How many apps or patients a message names. */
const SUGGESTED = 5

/** Some registered apps to choose from. */
async function suggestApps(io: Io): Promise<string> {
  const { listClients } = await import('../../auth/index.ts')
  const { items } = await performCommand(io, 'Cannot list apps', admin =>
    listClients(admin, { limit: SUGGESTED }),
  )
  return items.length === 0 ? '' : `, for example ${items.map(({ client_id }) => client_id).join(', ')}`
}

async function describeRefusal(refusal: string, found: AuthRefusal, io: Io): Promise<CommandFailure> {
  const { loadTestCommands } = await import('../../auth/index.ts')
  const { lacksPatient } = await loadTestCommands()
  const how = lacksPatient(found) ? ` Set --patient${await suggestPatients(loadSettings(io))}.` : ''
  return new CommandFailure(`${refusal}: ${found.description}${how}`)
}

/** Some patients of the embedded server. Other FHIR servers are not asked for theirs. */
async function suggestPatients(settings: Settings): Promise<string> {
  const { readPerson, formatName } = await import('../../web/person/index.ts')
  const patients = (await withRepository(settings, one => one.listFirst('Patient', SUGGESTED))) ?? []
  if (patients.length === 0) return ` to the id of a Patient on ${settings.fhirBaseUrl}`
  const names = patients.map(patient => `${patient.id} (${formatName(readPerson(patient).name)})`)
  return `, for example ${names.join(', ')}`
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
  const { parseContent } = await import('../../backends/sqlite/index.ts')
  const missing = await withRepository(settings, repository => {
    const find = (type: string, id: string) => {
      const stored = repository.find(type, id)
      return stored?.deleted === false ? parseContent(stored) : undefined
    }
    if (patientId !== undefined && !find('Patient', patientId)) return 'patient'
    return encounterId !== undefined && !isOfPatient(find('Encounter', encounterId), patientId)
      ? 'encounter'
      : undefined
  })
  // The file may be of an earlier start, before another server took its place.
  if (missing === undefined) return
  const server = await identifyServer(settings.fhirBaseUrl)
  if (server === 'another') return
  const advice =
    missing === 'patient'
      ? `Set --patient${await suggestPatients(settings)}.`
      : 'Set --encounter to the id of another one, or leave it out.'
  const hint =
    server === 'ours' ? advice : `If another FHIR server serves ${settings.fhirBaseUrl}, start it first.`
  const subject =
    missing === 'patient' ? `Patient/${patientId}` : `Encounter/${encounterId} of Patient/${patientId}`
  throw new CommandFailure(`Cannot find ${subject} in ${nameDataFile(settings)}. ${hint}`)
}

/** Reads the data of the embedded server. Undefined if there are none. */
async function withRepository<T>(
  settings: Settings,
  use: (repository: Repository) => T,
): Promise<T | undefined> {
  const file = nameDataFile(settings)
  if (settings.fhir.upstreamUrl !== undefined || !existsSync(file)) return undefined
  const { openRepository } = await import('../../backends/sqlite/index.ts')
  using repository = openRepository({ file, baseUrl: settings.fhirBaseUrl })
  return use(repository)
}

const METADATA_MS = 2_000

/** Whose CapabilityStatement, which needs no token, the server sends. Undefined if none responds. */
async function identifyServer(fhirBaseUrl: string): Promise<'ours' | 'another' | undefined> {
  const signal = AbortSignal.timeout(METADATA_MS)
  const response = await fetch(`${fhirBaseUrl}/metadata`, { signal }).catch(() => undefined)
  if (!response) return undefined
  const statement: unknown = await response.json().catch(() => undefined)
  const software = isRecord(statement) && isRecord(statement.software) ? statement.software.name : undefined
  return software === 'Sallyport' ? 'ours' : 'another'
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

export const commands = { token, launch }
