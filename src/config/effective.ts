import { isDeepStrictEqual } from 'node:util'
import type { Configuration } from './configuration.ts'
import type { Source } from './settings.ts'
import { type SettingKey, settingRows } from './table.ts'

export interface EffectiveSetting {
  readonly name: string
  readonly env: string
  readonly value: string | undefined
  readonly source: Source
}

const MASK = '********'

export function listEffectiveSettings({ settings, sources }: Configuration): readonly EffectiveSetting[] {
  return settingRows.map(([key, row]) => {
    const value = row.of(settings)
    return {
      name: row.name,
      env: row.env,
      value: value === undefined ? undefined : row.secret ? MASK : shown(value),
      source: sources.get(key) ?? 'default',
    }
  })
}

/** The names of the settings whose values differ. A default may be random. */
export function listChangedSettings(before: Configuration, after: Configuration): readonly string[] {
  const isSet = (key: SettingKey) => [before, after].some(({ sources }) => sources.get(key) !== 'default')
  return settingRows
    .filter(([key, row]) => isSet(key) && !isDeepStrictEqual(row.of(before.settings), row.of(after.settings)))
    .map(([, row]) => row.name)
}

function shown(value: unknown): string {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return JSON.stringify(value)
  return Array.isArray(value) ? value.join(',') : withoutPassword(String(value))
}

function withoutPassword(text: string): string {
  if (!text.startsWith('postgres')) return text
  const url = new URL(text)
  if (url.password !== '') url.password = MASK
  // A password may also be a query parameter of the URL.
  if (url.searchParams.has('password')) url.searchParams.set('password', MASK)
  return url.href
}
