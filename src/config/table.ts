import { appTable } from './app-table.ts'
import { auditTable } from './audit-table.ts'
import { authTable } from './auth-table.ts'
import { databaseTable } from './database-table.ts'
import { fhirTable } from './fhir-table.ts'
import { networkTable } from './network-table.ts'
import { serverTable } from './server-table.ts'
import type { SettingRow, ValueOf } from './setting-row.ts'
import { upstreamTable } from './upstream-table.ts'

/** Every setting: its name in the file, its variable, its kind of value and its default. */
export const settingsTable = {
  ...serverTable,
  ...networkTable,
  ...databaseTable,
  ...auditTable,
  ...authTable,
  ...fhirTable,
  ...upstreamTable,
  ...appTable,
}

/** The settings by the server that they are for. */
export const settingGroups: Readonly<Record<string, Readonly<Record<string, SettingRow<unknown>>>>> = {
  'All servers': serverTable,
  'All servers: network and TLS': networkTable,
  'All servers: database': databaseTable,
  'All servers: audit trail': auditTable,
  'Auth server': authTable,
  'FHIR server': fhirTable,
  'FHIR server: gateway': upstreamTable,
  'App server': appTable,
}

type Table = typeof settingsTable
export type SettingKey = keyof Table

/** What was given or is the default, before defaults that depend on other settings. */
export type SettingValues = { readonly [Key in SettingKey]: ValueOf<Table[Key]> }

/** The table as a list, in its order. */
export const settingRows = Object.entries(settingsTable) as readonly [SettingKey, SettingRow<unknown>][]
