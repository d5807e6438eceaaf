import type { Configuration } from './configuration.ts'
import type { Source } from './settings.ts'
import { settingRows } from './table.ts'

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
