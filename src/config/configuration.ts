import { isDeepStrictEqual } from 'node:util'
import { findNearest, isRecord } from '../core/index.ts'
import { deriveSettings, getValue } from './derive.ts'
import { readSecretFile } from './secret-file.ts'
import { listFormerVariables, listVariables, mayBeFile, type SettingRow } from './setting-row.ts'
import { readEach, SettingsError } from './settings-error.ts'
import { type FileTexts, readSettingsFile } from './settings-file.ts'
import type { SettingKey, SettingSource, Settings } from './settings-tree.ts'
import { findStartProblems, findStartWarnings } from './start-problems.ts'
import { settingRows, settingsTable } from './table.ts'
import { readTelemetry } from './telemetry.ts'

export type Environment = Readonly<Record<string, string | undefined>>

export interface Configuration {
  readonly settings: Settings
  readonly sources: ReadonlyMap<SettingKey, SettingSource>
  readonly warnings: readonly string[]
  /** Reasons not to start servers with these settings. Commands that only open the database ignore them. */
  readonly problems: readonly string[]
  readonly startWarnings: readonly string[]
}

// Read here and not in the table, because it names the file that the table is read from.
const FILE_VARIABLE = 'SMART_CONFIG'

/**
 * Environment variables take precedence over the file. Throws `SettingsError` with every unknown name and invalid
 * value.
 */
export function readConfiguration(env: Environment, cwd: string): Configuration {
  const file = readSettingsFile(env[FILE_VARIABLE] || undefined, cwd)
  const read = readEach(
    settingRows,
    ([key, row]) => [key, readSetting(key, row, { env, cwd, file })] as const,
  )
  const values = Object.fromEntries(read.map(([key, { value }]) => [key, value])) as Record<
    SettingKey,
    unknown
  >
  const sources = new Map(read.map(([key, { source }]) => [key, source]))
  const settings = deriveSettings(values, readTelemetry(env, cwd), cwd)
  return {
    settings,
    sources,
    warnings: findUnknownVariables(env),
    problems: findStartProblems(settings, sources),
    startWarnings: findStartWarnings(settings),
  }
}

export function readSettings(env: Environment, cwd: string): Settings {
  return readConfiguration(env, cwd).settings
}

interface Sources {
  readonly env: Environment
  readonly cwd: string
  readonly file: FileTexts
}

function readSetting(key: SettingKey, row: SettingRow<unknown>, { env, cwd, file }: Sources) {
  const given = readVariable(row, env, cwd)
  if (given) return { source: 'environment' as const, value: parseValue(row, given.text, given.variable) }
  const written = file.get(key)
  if (written !== undefined) return { source: 'file' as const, value: parseValue(row, written, row.name) }
  return {
    source: 'default' as const,
    value: row.initial === undefined ? undefined : row.type.parse(row.initial),
  }
}

function readVariable(row: SettingRow<unknown>, env: Environment, cwd: string) {
  refuseFormer(row, env)
  const [given, file] = listVariables(row).map(variable => findGiven(variable, env))
  if (given && file)
    throw new SettingsError(`Cannot use ${given.variable} and ${file.variable}: set only one of them`)
  return file ? { ...file, text: readSecretFile(file.text, cwd, file.variable) } : given
}

function refuseFormer(row: SettingRow<unknown>, env: Environment): void {
  const former = listFormerVariables(row).find(variable => findGiven(variable, env))
  if (former === undefined) return
  const [variable, file = variable] = listVariables(row)
  throw new SettingsError(`Cannot use ${former}: set ${former.endsWith('_FILE') ? file : variable} instead`)
}

/** A compose file or a shell leaves a variable empty to unset it. */
function findGiven(variable: string, env: Environment) {
  const text = env[variable] || undefined
  return text === undefined ? undefined : { variable, text }
}

function parseValue(row: SettingRow<unknown>, text: string, name: string): unknown {
  const value = row.type.parse(text)
  if (value !== undefined) return value
  const got = mayBeFile(row) ? '' : `, got ${JSON.stringify(hideLogin(text))}`
  throw new SettingsError(`Cannot use ${name}: expected ${row.type.expected}${got}`)
}

// A URL that contains a login is refused, and the message must not repeat it.
function hideLogin(text: string): string {
  return text.replace(/\/\/[^/\s]*@/g, '//********@')
}

function findUnknownVariables(env: Environment): readonly string[] {
  const known = [FILE_VARIABLE, ...settingRows.flatMap(([, row]) => listVariables(row))]
  return Object.keys(env)
    .filter(name => name.startsWith('SMART_') && !known.includes(name))
    .sort()
    .map(name => {
      const meant = findNearest(name, known)
      return `Unknown variable ${name} is ignored${meant === undefined ? '' : `: did you mean ${meant}?`}`
    })
}

export interface EffectiveSetting {
  readonly name: string
  readonly env: string
  readonly value: string | undefined
  readonly source: SettingSource
}

const MASK = '********'

export function listEffectiveSettings({ settings, sources }: Configuration): readonly EffectiveSetting[] {
  return settingRows.map(([key, row]) => {
    const value = show(row, getValue(settings, key))
    return {
      name: row.name,
      env: row.env,
      value: value === undefined ? undefined : row.secret ? MASK : formatValue(value),
      source: sources.get(key) ?? 'default',
    }
  })
}

/** The names of the settings whose values differ. A default may be random. */
export function listChangedSettings(before: Configuration, after: Configuration): readonly string[] {
  const isSet = (key: SettingKey) => [before, after].some(({ sources }) => sources.get(key) !== 'default')
  return settingRows
    .filter(
      ([key]) =>
        isSet(key) && !isDeepStrictEqual(getValue(before.settings, key), getValue(after.settings, key)),
    )
    .map(([, row]) => row.name)
}

function show({ type }: SettingRow<unknown>, value: unknown): unknown {
  return type.show && value !== undefined ? type.show(value) : value
}

function formatValue(value: unknown): string {
  if (isRecord(value)) return JSON.stringify(value)
  return Array.isArray(value) ? value.join(',') : hidePassword(String(value))
}

function hidePassword(text: string): string {
  if (!text.startsWith('postgres')) return text
  const url = new URL(text)
  if (url.password !== '') url.password = MASK
  // A password may also be a query parameter of the URL.
  if (url.searchParams.has('password')) url.searchParams.set('password', MASK)
  return url.href
}

/** Values of settings, as written in the environment or in a settings file. */
export type SettingTexts = Readonly<Partial<Record<SettingKey, string>>>

/** The environment in which these settings have these values. */
export function overrideSettings(env: Environment, texts: SettingTexts): Environment {
  const rows = listRows(texts)
  const replaced = new Set(rows.flatMap(([row]) => listVariables(row)))
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
