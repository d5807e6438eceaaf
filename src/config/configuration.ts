import { deriveSettings } from './derive.ts'
import { readSecretFile } from './secret-file.ts'
import { findFileVariables, findVariables, mayBeFile, type SettingRow } from './setting-row.ts'
import type { Settings, Source } from './settings.ts'
import { readEach, SettingsError } from './settings-error.ts'
import { type FileTexts, findNearest, readSettingsFile } from './settings-file.ts'
import { findStartProblems, findStartWarnings } from './start-problems.ts'
import { type SettingKey, type SettingValues, settingRows } from './table.ts'
import { readTelemetry } from './telemetry.ts'

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
  const read = readEach(
    settingRows,
    ([key, row]) => [key, readSetting(key, row, { env, cwd, file })] as const,
  )
  const values = Object.fromEntries(read.map(([key, { value }]) => [key, value])) as unknown as SettingValues
  const sources = new Map(read.map(([key, { source }]) => [key, source]))
  const settings = deriveSettings(values, readTelemetry(env, cwd), cwd)
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

interface Sources {
  readonly env: Environment
  readonly cwd: string
  readonly file: FileTexts
}

function readSetting(key: SettingKey, row: SettingRow<unknown>, { env, cwd, file }: Sources) {
  const given = readVariable(row, env, cwd)
  if (given) return { source: 'environment' as const, value: parsed(row, given.text, given.variable) }
  const written = file.get(key)
  if (written !== undefined) return { source: 'file' as const, value: parsed(row, written, row.name) }
  return {
    source: 'default' as const,
    value: row.initial === undefined ? undefined : row.type.parse(row.initial),
  }
}

function readVariable(row: SettingRow<unknown>, env: Environment, cwd: string) {
  const [given, other] = findGiven(findVariables(row), env)
  const [file] = findGiven(findFileVariables(row), env)
  if (given && file)
    throw new SettingsError(`Cannot use ${given.variable} and ${file.variable}: set only one of them`)
  if (file) return { variable: file.variable, text: readSecretFile(file.text, cwd, file.variable) }
  if (given && other && given.text !== other.text)
    throw new SettingsError(
      `Cannot use ${given.variable} and ${other.variable}: both set ${row.name}, to different values`,
    )
  return given
}

function findGiven(variables: readonly string[], env: Environment) {
  return variables.flatMap(variable => {
    // A compose file or a shell leaves a variable empty to unset it.
    const text = env[variable] || undefined
    return text === undefined ? [] : [{ variable, text }]
  })
}

function parsed(row: SettingRow<unknown>, text: string, name: string): unknown {
  const value = row.type.parse(text)
  if (value !== undefined) return value
  const got = mayBeFile(row) ? '' : `, got ${JSON.stringify(withoutLogin(text))}`
  throw new SettingsError(`Cannot use ${name}: expected ${row.type.expected}${got}`)
}

// A URL that contains a login is refused, and the message must not repeat it.
function withoutLogin(text: string): string {
  return text.replace(/\/\/[^/\s]*@/g, '//********@')
}

function unknownVariables(env: Environment): readonly string[] {
  const known = [
    FILE_VARIABLE,
    ...settingRows.flatMap(([, row]) => [...findVariables(row), ...findFileVariables(row)]),
  ]
  return Object.keys(env)
    .filter(name => name.startsWith('SMART_') && !known.includes(name))
    .sort()
    .map(name => {
      const meant = findNearest(name, known)
      return `Unknown variable ${name} is ignored${meant === undefined ? '' : `: did you mean ${meant}?`}`
    })
}
