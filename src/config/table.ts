import { joinTables, type RowsOf } from '../core/index.ts'
import { agentsTable } from './agents-table.ts'
import { auditTable } from './audit-table.ts'
import { appTable, authTable } from './auth-table.ts'
import { brandTable } from './brand-table.ts'
import { cdsTable } from './cds-table.ts'
import { databaseTable } from './database-table.ts'
import { fhirTable, upstreamTable } from './fhir-table.ts'
import { loginTable } from './login-table.ts'
import { networkTable, serverTable } from './server-table.ts'
import type { SettingRow } from './setting-row.ts'

/** The tables by their titles in docs/settings.md. */
export const settingGroups = {
  'All servers': serverTable,
  'All servers: network and TLS': networkTable,
  'All servers: database': databaseTable,
  'All servers: audit trail': auditTable,
  'Auth server': authTable,
  'Auth server: your organization': brandTable,
  'Auth server: sign-in providers': loginTable,
  'Auth server: decision support': cdsTable,
  'Auth server and FHIR server: assistants': agentsTable,
  'FHIR server': fhirTable,
  'FHIR server: gateway': upstreamTable,
  'App server': appTable,
} as const

export const settingsTable: RowsOf<typeof settingGroups> = joinTables(settingGroups)

export const settingRows = Object.entries(settingsTable) as readonly [
  keyof typeof settingsTable,
  SettingRow<unknown>,
][]
