import type { Command } from '../command.ts'

export type Load = () => Promise<{ readonly commands: Readonly<Record<string, Command>> }>

// Commands load on demand: `--help` loads none of them, and `settings` not the FHIR server.
const start = () => import('./start.ts')
const settings = () => import('./settings.ts')
const account = () => import('./account.ts')
const clinician = () => import('./clinician.ts')
const operations = () => import('./operation.ts')
const lists = () => import('./list.ts')
const login = () => import('./login.ts')
const clientRegistration = () => import('./client-registration.ts')
const client = () => import('./client.ts')
const signIn = () => import('./sign-in.ts')
const keys = () => import('./keys.ts')
const agents = () => import('./agents.ts')
const mcp = () => import('./mcp.ts')
const audit = () => import('./audit.ts')
const explain = () => import('./explain.ts')
const problems = () => import('./problems.ts')
const developer = () => import('./developer.ts')
const dataImport = () => import('./data-import.ts')
const dataExport = () => import('./data-export.ts')
const dataReset = () => import('./data-reset.ts')
const checkSetup = () => import('./check-setup.ts')
const checkUpstream = () => import('./check.ts')
const upgrade = () => import('./upgrade.ts')
const inferno = () => import('./inferno.ts')
const health = () => import('./health.ts')

/** By the heading in `--help`, in the order in which a newcomer needs them. */
export const groups = {
  'First steps': {
    start: { summary: 'Start all servers, or only the servers that you name', load: start },
    'client add': { summary: 'Register an app', load: clientRegistration },
    launch: { summary: 'Print a link that launches an app for a patient', load: developer },
    problems: { summary: 'List what apps were refused, with the cause and what to change', load: problems },
    check: {
      summary: 'Validate settings, certificates, database, sign-in providers and upstream',
      load: checkSetup,
    },
  },
  Development: {
    token: { summary: 'Print an access token for tests of an app', load: developer },
    mcp: {
      summary: 'Connect a desktop assistant to a record, by MCP on standard input and output',
      load: mcp,
    },
    explain: { summary: 'Show whether a request would be allowed, and why', load: explain },
    'data import': {
      summary: 'Import FHIR resources into the embedded or another FHIR server',
      load: dataImport,
    },
    'data export': {
      summary: 'Export FHIR resources of the embedded or another FHIR server as NDJSON',
      load: dataExport,
    },
    'data reset': {
      summary: 'Remove all FHIR resources and create the sample patients again',
      load: dataReset,
    },
    inferno: { summary: 'Register the apps of the Inferno test kits, and print a preset', load: inferno },
  },
  Apps: {
    'client list': { summary: 'List the registered apps', load: lists },
    'client show': { summary: 'Show the properties of a registered app', load: client },
    'client set': { summary: 'Change a registered app', load: clientRegistration },
    'client approve': { summary: 'Approve an app that registered itself', load: operations },
    'client disable': { summary: 'Disable an app and revoke its access', load: operations },
    'client enable': { summary: 'Enable a disabled app', load: operations },
    'client remove': { summary: 'Remove an app and revoke its access', load: operations },
  },
  Users: {
    'clinician add': { summary: 'Add a clinician', load: clinician },
    'clinician list': { summary: 'List the clinicians', load: lists },
    'clinician set': { summary: 'Change a clinician: name, Practitioner, role', load: clinician },
    'clinician set-password': {
      summary: 'Set a password; end the sign-ins and app access',
      load: clinician,
    },
    'clinician reset-second-factor': {
      summary: 'Remove the second factors of a clinician who lost them',
      load: operations,
    },
    'clinician unlock': {
      summary: 'Accept passwords for a clinician again after too many wrong ones',
      load: operations,
    },
    'clinician disable': {
      summary: 'Disable a clinician; end the sign-ins and app access',
      load: operations,
    },
    'clinician enable': { summary: 'Enable a disabled clinician', load: operations },
    'clinician remove': { summary: 'Remove a clinician, with all access', load: operations },
    'clinician link': {
      summary: "Link a clinician to a user of the hospital's identity provider",
      load: clinician,
    },
    'account add': { summary: 'Add a patient or a related person who signs in to apps', load: account },
    'account list': { summary: 'List the accounts of patients and related persons', load: lists },
    'account set': { summary: 'Change an account: name, Patient, RelatedPersons', load: account },
    'account reset-second-factor': {
      summary: 'Remove the second factors of a patient or related person who lost them',
      load: operations,
    },
    'account unlock': {
      summary: 'Accept passwords for an account again after too many wrong ones',
      load: operations,
    },
    'account disable': { summary: 'Disable an account; end the sign-ins and app access', load: operations },
    'account enable': { summary: 'Enable a disabled account', load: operations },
    'account remove': { summary: 'Remove an account, with all access', load: operations },
    'login explain': {
      summary: 'Show who would be signed in with the claims of an identity provider, or why not',
      load: login,
    },
  },
  Access: {
    'bulk-export list': { summary: 'List the bulk exports of backend services', load: lists },
    'bulk-export end': { summary: 'End a bulk export', load: operations },
    'grant list': { summary: 'List who has access now: grants of users, and backend services', load: lists },
    'grant revoke': { summary: 'Revoke the access of an app on behalf of a user', load: operations },
    'sign-in list': { summary: 'List the browsers in which users are signed in', load: lists },
    'sign-in end': { summary: 'End a sign-in, and the access of apps in it', load: signIn },
  },
  'Audit trail': {
    audit: {
      summary: 'List audit records: sign-ins, launches, tokens, sessions and FHIR requests',
      load: audit,
    },
    'audit verify': { summary: 'Verify that no audit record was changed or removed', load: audit },
    'audit check-file': { summary: 'Compare an exported file with the audit trail', load: audit },
  },
  Operation: {
    settings: { summary: 'Print the settings in effect, with secrets masked', load: settings },
    health: { summary: 'Ask the servers of this machine whether they run', load: health },
    'check upstream': {
      summary: 'Check whether a FHIR server works as the upstream of the gateway',
      load: checkUpstream,
    },
    'upgrade check': {
      summary: 'Show whether this version can replace the running one without a stop',
      load: upgrade,
    },
    'upgrade apply': { summary: 'Apply the migrations of this version to the database', load: upgrade },
    'agents off': { summary: 'Refuse every AI assistant at once', load: agents },
    'agents on': { summary: 'Let AI assistants ask for access again', load: agents },
    'keys list': { summary: 'List the signing keys', load: lists },
    'keys rotate': { summary: 'Replace the signing key without failed requests', load: keys },
    'keys withdraw': { summary: 'Remove a leaked signing key at once', load: keys },
  },
} satisfies Record<string, Record<string, { readonly summary: string; readonly load: Load }>>

export const table = {
  ...groups['First steps'],
  ...groups.Development,
  ...groups.Apps,
  ...groups.Users,
  ...groups.Access,
  ...groups['Audit trail'],
  ...groups.Operation,
}
