import type { Command } from '../command.ts'

/** Every command, loaded when it is called: `settings` does not wait for the FHIR server to be read. */
const loaders = {
  start: async () => (await import('./start.ts')).start,
  settings: async () => (await import('./settings.ts')).settings,
  'clinician add': async () => (await import('./clinician-add.ts')).clinicianAdd,
  'clinician list': async () => (await import('./clinician-list.ts')).clinicianList,
  'clinician set-password': async () => (await import('./clinician-set-password.ts')).clinicianSetPassword,
  'clinician disable': async () => (await import('./clinician-disable.ts')).clinicianDisable,
  'clinician enable': async () => (await import('./clinician-disable.ts')).clinicianEnable,
  'client add': async () => (await import('./client-add.ts')).clientAdd,
  'client list': async () => (await import('./client-list.ts')).clientList,
  'client show': async () => (await import('./client-show.ts')).clientShow,
  'client set': async () => (await import('./client-set.ts')).clientSet,
  'client approve': async () => (await import('./client-approve.ts')).clientApprove,
  'client remove': async () => (await import('./client-remove.ts')).clientRemove,
  'keys rotate': async () => (await import('./keys.ts')).keysRotate,
  'keys withdraw': async () => (await import('./keys.ts')).keysWithdraw,
  'keys list': async () => (await import('./keys.ts')).keysList,
  audit: async () => (await import('./audit.ts')).audit,
  explain: async () => (await import('./explain.ts')).explain,
  'data import': async () => (await import('./data.ts')).dataImport,
} satisfies Record<string, () => Promise<Command>>

export type CommandName = keyof typeof loaders

/** As they are typed, in the order of the help. */
export const commandNames = Object.keys(loaders) as readonly CommandName[]

export function loadCommand(name: CommandName): Promise<Command> {
  return loaders[name]()
}
