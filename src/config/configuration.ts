import { deriveSettings } from './derive.ts'
import { findNearest } from './find-nearest.ts'
import { findVariables, type SettingRow } from './setting-row.ts'
import type { Settings, Source } from './settings.ts'
import { readEach, SettingsError } from './settings-error.ts'
import { type FileTexts, readSettingsFile } from './settings-file.ts'
import { findStartProblems, findStartWarnings } from './start-problems.ts'
import { type SettingKey, type SettingValues, settingRows } from './table.ts'

/** The variables of the environment. */
export type Environment = Readonly<Record<string, string | undefined>>

/** The settings, and what is to be said about them. */
export interface Configuration {
  readonly settings: Settings
  readonly sources: ReadonlyMap<SettingKey, Source>
  /** One line each, for standard error. */
  readonly warnings: readonly string[]
  /** Why servers must not start with these settings. A command that only opens the database does not mind. */
  readonly problems: readonly string[]
  /** What whoever starts servers should know, one line each. */
  readonly startWarnings: readonly string[]
}

// Read here and not in the table: it says where the table's file is.
const FILE_VARIABLE = 'SMART_CONFIG'

/** Reads environment and file; the environment wins. Throws `SettingsError` with every unknown name or bad value. */
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

/** The settings alone. */
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
    // An empty variable is how a compose file or a shell says that it is not set.
    const text = env[variable] || undefined
    return text === undefined ? [] : [{ variable, text }]
  })
  if (given && other && given.text !== other.text)
    throw new SettingsError(
      `Cannot use ${given.variable} and ${other.variable}: both are ${row.name}, and they differ`,
    )
  return given
}

function parsed(row: SettingRow<unknown>, text: string, name: string): unknown {
  const value = row.type.parse(text)
  if (value !== undefined) return value
  // The text of a database address has a password in it, too.
  const got =
    row.secret || row.name === 'smart.server.database-url'
      ? ''
      : `, got ${JSON.stringify(withoutLogin(text))}`
  throw new SettingsError(`Cannot use ${name}: expected ${row.type.expected}${got}`)
}

// An address with a login in it is refused, and must not be printed for it.
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
