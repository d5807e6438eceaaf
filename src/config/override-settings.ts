import type { Environment } from './configuration.ts'
import { findFileVariables, findVariables } from './setting-row.ts'
import { type SettingKey, settingsTable } from './table.ts'

/** Values of settings, as written in the environment or in a settings file. */
export type SettingTexts = Readonly<Partial<Record<SettingKey, string>>>

/** The environment in which these settings have these values, whichever of their variables it had. */
export function overrideSettings(env: Environment, texts: SettingTexts): Environment {
  const rows = listRows(texts)
  const replaced = new Set(rows.flatMap(([row]) => [...findVariables(row), ...findFileVariables(row)]))
  const others = Object.entries(env).filter(([variable]) => !replaced.has(variable))
  return { ...Object.fromEntries(others), ...Object.fromEntries(rows.map(([row, text]) => [row.env, text])) }
}

/** A settings file with these values. */
export function formatSettingsFile(texts: SettingTexts): string {
  return listRows(texts)
    .map(([row, text]) => `${row.name}: ${JSON.stringify(text)}\n`)
    .join('')
}

function listRows(texts: SettingTexts) {
  const entries = Object.entries(texts) as [SettingKey, string][]
  return entries.map(([key, text]) => [settingsTable[key], text] as const)
}
