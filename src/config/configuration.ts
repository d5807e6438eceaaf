import { deriveSettings } from './derive.ts'
import { findVariables, type SettingRow } from './setting-row.ts'
import type { Settings, Source } from './settings.ts'
import { readEach, SettingsError } from './settings-error.ts'
import { type FileTexts, findNearest, readSettingsFile } from './settings-file.ts'
import { findStartProblems, findStartWarnings } from './start-problems.ts'
import { type SettingKey, type SettingValues, settingRows } from './table.ts'

export type Environment = Readonly<Record<string, string | undefined>>

export interface Configuration {
  readonly settings: Settings
  readonly sources: ReadonlyMap<SettingKey, Source>
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
  const read = readEach(settingRows, ([key, row]) => [key, readSetting(key, row, env, file)] as const)
  const values = Object.fromEntries(read.map(([key, { value }]) => [key, value])) as unknown as SettingValues
  const sources = new Map(read.map(([key, { source }]) => [key, source]))
  const settings = deriveSettings(values, cwd)
  return {
    settings,
    sources,
    warnings: unknownVariables(env),
    problems: findStartProblems(settings, sources),
    startWarnings: findStartWarnings(settings),
  }
}

export function readSettings(env: Environment, cwd: string): Settings {
  return readConfiguration(env, cwd).settings
}

function readSetting(key: SettingKey, row: SettingRow<unknown>, env: Environment, file: FileTexts) {
  const given = readVariable(row, env)
  if (given) return { source: 'environment' as const, value: parsed(row, given.text, given.variable) }
  const written = file.get(key)
  if (written !== undefined) return { source: 'file' as const, value: parsed(row, written, row.name) }
  return {
    source: 'default' as const,
    value: row.initial === undefined ? undefined : row.type.parse(row.initial),
  }
}

function readVariable(row: SettingRow<unknown>, env: Environment) {
  const [given, other] = findVariables(row).flatMap(variable => {
    // A compose file or a shell leaves a variable empty to unset it.
    const text = env[variable] || undefined
    return text === undefined ? [] : [{ variable, text }]
  })
  if (given && other && given.text !== other.text)
    throw new SettingsError(
      `Cannot use ${given.variable} and ${other.variable}: both set ${row.name}, to different values`,
    )
  return given
}

function parsed(row: SettingRow<unknown>, text: string, name: string): unknown {
  const value = row.type.parse(text)
  if (value !== undefined) return value
  // A database URL may contain a password.
  const got =
    row.secret || row.name === 'smart.server.database-url'
      ? ''
      : `, got ${JSON.stringify(withoutLogin(text))}`
  throw new SettingsError(`Cannot use ${name}: expected ${row.type.expected}${got}`)
}

// A URL that contains a login is refused, and the message must not repeat it.
function withoutLogin(text: string): string {
  return text.replace(/\/\/[^/\s]*@/g, '//********@')
}

function unknownVariables(env: Environment): readonly string[] {
  const known = [FILE_VARIABLE, ...settingRows.flatMap(([, row]) => findVariables(row))]
  return Object.keys(env)
    .filter(name => name.startsWith('SMART_') && !known.includes(name))
    .sort()
    .map(name => {
      const meant = findNearest(name, known)
      return `Unknown variable ${name} is ignored${meant === undefined ? '' : `: did you mean ${meant}?`}`
    })
}
