import { joinTables } from '../../core/index.ts'
import type { Command, NamedCommand } from '../command.ts'

/** The commands by their headings in `--help`, in the order in which a newcomer needs them. */
const GROUPS = {
  'First steps': {
    start: 'Start all servers, or only the servers that you name',
    'client add': 'Register an app',
    launch: 'Print a link that launches an app for a patient',
    problems: 'List what apps were refused, with the cause and what to change',
    check: 'Validate settings, certificates, database, sign-in providers and upstream',
  },
  Development: {
    token: 'Print an access token for tests of an app',
    mcp: 'Connect a desktop assistant to a record, by MCP on standard input and output',
    explain: 'Show whether a request would be allowed, and why',
    'data import': 'Import FHIR resources into the embedded or another FHIR server',
    'data export': 'Export FHIR resources of the embedded or another FHIR server as NDJSON',
    'data reset': 'Remove all FHIR resources and create the sample patients again',
    inferno: 'Register the apps of the Inferno test kits, and print a preset',
  },
  Apps: {
    'client list': 'List the registered apps',
    'client show': 'Show the properties of a registered app',
    'client set': 'Change a registered app',
    'client approve': 'Approve an app that registered itself',
    'client disable': 'Disable an app and revoke its access',
    'client enable': 'Enable a disabled app',
    'client remove': 'Remove an app and revoke its access',
  },
  Users: {
    'clinician add': 'Add a clinician',
    'clinician list': 'List the clinicians',
    'clinician set': 'Change a clinician: name, Practitioner, role',
    'clinician set-password': 'Set a password; end the sign-ins and app access',
    'clinician reset-second-factor': 'Remove the second factors of a clinician who lost them',
    'clinician unlock': 'Accept passwords for a clinician again after too many wrong ones',
    'clinician disable': 'Disable a clinician; end the sign-ins and app access',
    'clinician enable': 'Enable a disabled clinician',
    'clinician remove': 'Remove a clinician, with all access',
    'clinician link': "Link a clinician to a user of the hospital's identity provider",
    'account add': 'Add a patient or a related person who signs in to apps',
    'account list': 'List the accounts of patients and related persons',
    'account set': 'Change an account: name, Patient, RelatedPersons',
    'account reset-second-factor': 'Remove the second factors of a patient or related person who lost them',
    'account unlock': 'Accept passwords for an account again after too many wrong ones',
    'account disable': 'Disable an account; end the sign-ins and app access',
    'account enable': 'Enable a disabled account',
    'account remove': 'Remove an account, with all access',
    'login explain': 'Show who would be signed in with the claims of an identity provider, or why not',
  },
  Access: {
    'bulk-export list': 'List the bulk exports of backend services',
    'bulk-export show': 'Show a bulk export',
    'bulk-export end': 'End a bulk export',
    'grant list': 'List who has access now: grants of users, and backend services',
    'grant revoke': 'Revoke the access of an app on behalf of a user',
    'sign-in list': 'List the browsers in which users are signed in',
    'sign-in end': 'End a sign-in, and the access of apps in it',
  },
  'Audit trail': {
    audit: 'List audit records: sign-ins, launches, tokens, sessions and FHIR requests',
    'audit verify': 'Verify that no audit record was changed or removed',
    'audit check-file': 'Compare an exported file with the audit trail',
  },
  Operation: {
    settings: 'Print the settings in effect, with secrets masked',
    health: 'Ask the servers of this machine whether they run',
    'check upstream': 'Check whether a FHIR server works as the upstream of the gateway',
    'upgrade check': 'Show whether this version can replace the running one without a stop',
    'upgrade apply': 'Apply the migrations of this version to the database',
    'agents off': 'Refuse every AI assistant at once',
    'agents on': 'Let AI assistants ask for access again',
    'keys list': 'List the signing keys',
    'keys rotate': 'Replace the signing key without failed requests',
    'keys withdraw': 'Remove a leaked signing key at once',
    completion: 'Print a script that completes commands in bash, zsh or fish',
  },
} as const

const SUMMARIES = joinTables(GROUPS)

export type CommandName = keyof typeof SUMMARIES

export const commandNames = Object.keys(SUMMARIES) as readonly CommandName[]

export const commandGroups = Object.entries(GROUPS).map(([title, group]) => ({
  title,
  names: Object.keys(group) as readonly CommandName[],
}))

export function getSummary(name: CommandName): string {
  return SUMMARIES[name]
}

type Load = () => Promise<{ readonly commands: Readonly<Record<string, Command>> }>

/**
 * By command, or by its first word. Files load on demand: `--help` loads none of them, and `settings` not the FHIR server.
 * All other commands follow from the lists and operations of administrators.
 */
const FILES: Readonly<Record<string, Load>> = {
  start: () => import('./start.ts'),
  'client add': () => import('./client-registration.ts'),
  'client set': () => import('./client-registration.ts'),
  'client show': () => import('./client.ts'),
  launch: () => import('./developer.ts'),
  token: () => import('./developer.ts'),
  problems: () => import('./problems.ts'),
  check: () => import('./check.ts'),
  'check upstream': () => import('./check-upstream.ts'),
  mcp: () => import('./mcp.ts'),
  explain: () => import('./explain.ts'),
  'data import': () => import('./data-import.ts'),
  'data export': () => import('./data-export.ts'),
  'data reset': () => import('./data-reset.ts'),
  inferno: () => import('./inferno.ts'),
  'clinician add': () => import('./clinician.ts'),
  'clinician set': () => import('./clinician.ts'),
  'clinician set-password': () => import('./clinician.ts'),
  'clinician link': () => import('./clinician.ts'),
  'account add': () => import('./account.ts'),
  'account set': () => import('./account.ts'),
  login: () => import('./login.ts'),
  audit: () => import('./audit.ts'),
  settings: () => import('./settings.ts'),
  health: () => import('./health.ts'),
  upgrade: () => import('./upgrade.ts'),
  'keys withdraw': () => import('./keys.ts'),
  completion: async () =>
    (await import('./completion.ts')).defineCompletion(() => Promise.all(commandNames.map(loadCommand))),
}

const BY_VERB: Readonly<Record<string, Load>> = {
  list: () => import('./list.ts'),
  show: () => import('./show.ts'),
}
const loadOperation: Load = () => import('./operation.ts')

export async function loadCommand(name: CommandName): Promise<NamedCommand> {
  const [first = '', verb = ''] = name.split(' ')
  const load = FILES[name] ?? FILES[first] ?? BY_VERB[verb] ?? loadOperation
  const command = (await load()).commands[name]
  if (!command) throw new Error(`No file has the command ${name}`)
  return { name, summary: SUMMARIES[name], ...command }
}
