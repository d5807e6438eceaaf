import type { Configuration } from './configuration.ts'
import type { Source } from './settings.ts'
import { settingRows } from './table.ts'

/** A setting as the `settings` command prints it: secrets masked. */
export interface EffectiveSetting {
  readonly name: string
  readonly env: string
  /** Undefined: there is none. */
  readonly value: string | undefined
  readonly source: Source
}

const MASK = '********'

/** Every setting with its effective value. */
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
  return Array.isArray(value) ? value.join(',') : withoutPassword(String(value))
}

function withoutPassword(text: string): string {
  if (!text.startsWith('postgres')) return text
  const url = new URL(text)
  if (url.password !== '') url.password = MASK
  // A password may also be a parameter of the address.
  if (url.searchParams.has('password')) url.searchParams.set('password', MASK)
  return url.href
}
