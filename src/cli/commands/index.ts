import type { Command, NamedCommand } from '../command.ts'

/** Commands load on demand: `--help` loads none of them, and `settings` not the FHIR server. */
const commands = {
  start: {
    summary: 'Start all servers, or only the servers that you name',
    load: async () => (await import('./start.ts')).start,
  },
  settings: {
    summary: 'Print the settings in effect, with secrets masked',
    load: async () => (await import('./settings.ts')).settings,
  },
  'account add': {
    summary: 'Add a patient or a related person who signs in to apps',
    load: async () => (await import('./account.ts')).accountAdd,
  },
  'clinician add': {
    summary: 'Add a clinician',
    load: async () => (await import('./clinician.ts')).clinicianAdd,
  },
  'clinician list': {
    summary: 'List the clinicians',
    load: async () => (await import('./clinician.ts')).clinicianList,
  },
  'clinician set': {
    summary: 'Change a clinician: name, Practitioner, administrator',
    load: async () => (await import('./clinician.ts')).clinicianSet,
  },
  'clinician set-password': {
    summary: "Set a password; end the clinician's logins and app access",
    load: async () => (await import('./clinician.ts')).clinicianSetPassword,
  },
  'clinician disable': {
    summary: 'Disable a clinician; end the logins and app access',
    load: async () => (await import('./clinician.ts')).clinicianDisable,
  },
  'clinician enable': {
    summary: 'Enable a disabled clinician',
    load: async () => (await import('./clinician.ts')).clinicianEnable,
  },
  'clinician link': {
    summary: "Link a clinician to a user of the hospital's identity provider",
    load: async () => (await import('./clinician.ts')).clinicianLink,
  },
  'login explain': {
    summary: 'Show who would be signed in with the claims of an identity provider, or why not',
    load: async () => (await import('./login.ts')).loginExplain,
  },
  'client add': {
    summary: 'Register an app',
    load: async () => (await import('./client-registration.ts')).clientAdd,
  },
  'client list': {
    summary: 'List the registered apps',
    load: async () => (await import('./client.ts')).clientList,
  },
  'client show': {
    summary: 'Show the properties of a registered app',
    load: async () => (await import('./client.ts')).clientShow,
  },
  'client set': {
    summary: 'Change a registered app',
    load: async () => (await import('./client-registration.ts')).clientSet,
  },
  'client approve': {
    summary: 'Approve an app that registered itself',
    load: async () => (await import('./client.ts')).clientApprove,
  },
  'client disable': {
    summary: 'Disable an app and revoke its access',
    load: async () => (await import('./client.ts')).clientDisable,
  },
  'client enable': {
    summary: 'Enable a disabled app',
    load: async () => (await import('./client.ts')).clientEnable,
  },
  'client remove': {
    summary: 'Remove an app and revoke its access',
    load: async () => (await import('./client.ts')).clientRemove,
  },
  'keys rotate': {
    summary: 'Replace the signing key without failed requests',
    load: async () => (await import('./keys.ts')).keysRotate,
  },
  'keys withdraw': {
    summary: 'Remove a leaked signing key at once',
    load: async () => (await import('./keys.ts')).keysWithdraw,
  },
  'keys list': {
    summary: 'List the signing keys',
    load: async () => (await import('./keys.ts')).keysList,
  },
  audit: {
    summary: 'List audit records: logins, launches, tokens, sessions and FHIR requests',
    load: async () => (await import('./audit.ts')).audit,
  },
  'audit verify': {
    summary: 'Verify that no audit record was changed or removed',
    load: async () => (await import('./audit.ts')).auditVerify,
  },
  explain: {
    summary: 'Show whether a request would be allowed, and why',
    load: async () => (await import('./explain.ts')).explainCommand,
  },
  token: {
    summary: 'Print an access token for tests of an app',
    load: async () => (await import('./developer.ts')).token,
  },
  launch: {
    summary: 'Print a link that launches an app for a patient',
    load: async () => (await import('./developer.ts')).launch,
  },
  'data import': {
    summary: 'Import FHIR resources into the embedded or another FHIR server',
    load: async () => (await import('./data-import.ts')).dataImport,
  },
  'data export': {
    summary: 'Export the FHIR resources of the embedded server as NDJSON',
    load: async () => (await import('./data.ts')).dataExport,
  },
  'data reset': {
    summary: 'Remove all FHIR resources and create the sample patients again',
    load: async () => (await import('./data.ts')).dataReset,
  },
  check: {
    summary: 'Validate settings, certificates, database, sign-in providers and upstream',
    load: async () => (await import('./check-setup.ts')).checkCommand,
  },
  'check upstream': {
    summary: 'Check whether a FHIR server works as the upstream of the gateway',
    load: async () => (await import('./check.ts')).checkUpstreamCommand,
  },
} satisfies Record<string, { readonly summary: string; readonly load: () => Promise<Command> }>

export type CommandName = keyof typeof commands

export const commandNames = Object.keys(commands) as readonly CommandName[]

export function getSummary(name: CommandName): string {
  return commands[name].summary
}

export async function loadCommand(name: CommandName): Promise<NamedCommand> {
  const { summary, load } = commands[name]
  return { name, summary, ...(await load()) }
}
