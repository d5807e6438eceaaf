import { existsSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { parse } from 'yaml'
import { describeError, findNearest, HOW, isRecord } from '../core/index.ts'
import { readSecretFile } from './secret-file.ts'
import { mayBeFile } from './setting-row.ts'
import type { SettingType } from './setting-types.ts'
import { readEach, SettingsError } from './settings-error.ts'
import type { SettingKey } from './settings-tree.ts'
import { settingRows, settingsTable } from './table.ts'

export type FileTexts = ReadonlyMap<SettingKey, string>

const USUAL_NAME = 'sallyport.yaml'

/** Reads the file that `SMART_CONFIG` names, or `sallyport.yaml` if it exists (SETTING-1). */
export function readSettingsFile(named: string | undefined, cwd: string): FileTexts {
  const path = resolve(cwd, named ?? USUAL_NAME)
  if (named === undefined && !existsSync(path)) return new Map()
  const shownAs = named ?? USUAL_NAME
  const texts = new Map<SettingKey, string>()
  readEach([...leaves(parseFile(path, shownAs))], ([name, value]) => {
    const { key, isFile } = findKey(name, shownAs)
    if (texts.has(key))
      throw new SettingsError(`Cannot use ${shownAs}: ${settingsTable[key].name} is set twice`)
    const text = readValue(key, name, value, shownAs)
    texts.set(key, isFile ? readSecretFile(text, cwd, name) : text)
  })
  return texts
}

// The failsafe schema keeps every value as written: a secret of digits does not become a number.
function parseFile(path: string, shownAs: string): unknown {
  try {
    return parse(readFileSync(path, 'utf8'), { schema: 'failsafe' })
  } catch (cause) {
    const reason = describeError(cause).split('\n')[0]?.replace(/:$/, '')
    throw new SettingsError(`Cannot read settings file ${shownAs}: ${reason}`, { cause })
  }
}

/** `smart.server.bind` may also be written as three levels. */
function* leaves(value: unknown, prefix = ''): Generator<readonly [name: string, value: unknown]> {
  if (isRecord(value)) {
    for (const [key, inner] of Object.entries(value))
      yield* leaves(inner, prefix === '' ? key : `${prefix}.${key}`)
  } else if (prefix !== '' || (value !== null && value !== '')) {
    yield [prefix, value]
  }
}

function findKey(name: string, shownAs: string): { readonly key: SettingKey; readonly isFile: boolean } {
  const named = settingRows.find(([, row]) => row.name === name || row.alias === name)
  if (named) return { key: named[0], isFile: false }
  const filed = settingRows.find(([, row]) => mayBeFile(row) && `${row.name}-file` === name)
  if (filed) return { key: filed[0], isFile: true }
  const [, replacement] =
    settingRows.find(([, row]) => row.replaces?.includes(name.replace(/-file$/, ''))) ?? []
  if (replacement)
    throw new SettingsError(`Cannot use ${name} in ${shownAs}: set ${replacement.name} instead`)
  if (name === '') throw new SettingsError(`Cannot use ${shownAs}: expected names with values`)
  const meant = findNearest(
    name,
    settingRows.map(([, row]) => row.name),
  )
  const expected = meant ?? `a name that \`${HOW} settings\` prints`
  throw new SettingsError(`Cannot use ${shownAs}: unknown setting ${name}; expected ${expected}`)
}

function readValue(key: SettingKey, name: string, value: unknown, shownAs: string): string {
  const type: SettingType<unknown> = settingsTable[key].type
  if (typeof value === 'string' && value !== '') return value
  if (type.structured && typeof value === 'object') return JSON.stringify(value)
  if (Array.isArray(value) && type.separator !== undefined && value.every(item => typeof item === 'string'))
    return value.join(type.separator)
  throw new SettingsError(`Cannot use ${name} in ${shownAs}: expected ${type.expected}`)
}
