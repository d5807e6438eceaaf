import type { Command } from '../command.ts'

/** Commands load on demand: `settings` does not load the FHIR server. */
const loaders = {
  start: async () => (await import('./start.ts')).start,
  settings: async () => (await import('./settings.ts')).settings,
  'clinician add': async () => (await import('./clinician.ts')).clinicianAdd,
  'clinician list': async () => (await import('./clinician.ts')).clinicianList,
  'clinician set-password': async () => (await import('./clinician.ts')).clinicianSetPassword,
  'clinician disable': async () => (await import('./clinician.ts')).clinicianDisable,
  'clinician enable': async () => (await import('./clinician.ts')).clinicianEnable,
  'client add': async () => (await import('./client-registration.ts')).clientAdd,
  'client list': async () => (await import('./client.ts')).clientList,
  'client show': async () => (await import('./client.ts')).clientShow,
  'client set': async () => (await import('./client-registration.ts')).clientSet,
  'client approve': async () => (await import('./client.ts')).clientApprove,
  'client remove': async () => (await import('./client.ts')).clientRemove,
  'keys rotate': async () => (await import('./keys.ts')).keysRotate,
  'keys withdraw': async () => (await import('./keys.ts')).keysWithdraw,
  'keys list': async () => (await import('./keys.ts')).keysList,
  audit: async () => (await import('./audit.ts')).audit,
  explain: async () => (await import('./explain.ts')).explain,
  'data import': async () => (await import('./data.ts')).dataImport,
  'check upstream': async () => (await import('./check.ts')).checkUpstreamCommand,
} satisfies Record<string, () => Promise<Command>>

export type CommandName = keyof typeof loaders

export const commandNames = Object.keys(loaders) as readonly CommandName[]

export function loadCommand(name: CommandName): Promise<Command> {
  return loaders[name]()
}
