import type { SettingType } from './setting-types.ts'
import type { Settings } from './settings.ts'

export interface SettingRow<T> {
  readonly name: string
  readonly alias?: string
  readonly env: string
  readonly type: SettingType<T>
  /** The default as text, if it is constant. */
  readonly initial?: string
  /** The default in words, if it depends on other settings or there is none. */
  readonly otherwise?: string
  readonly about: string
  readonly secret?: true
  /** The value may contain a password, and is shown without it. */
  readonly hasPassword?: true
  readonly of: (settings: Settings) => unknown
}

/** A setting has its documented variable and the variable derived from its name. They are often the same. */
export function findVariables({ name, env }: Pick<SettingRow<unknown>, 'name' | 'env'>): readonly string[] {
  return [...new Set([env, name.toUpperCase().replace(/[.-]/g, '_')])]
}

/** A secret may also be the content of a file, which `<variable>_FILE` or `<name>-file` names. */
export function mayBeFile({ secret, hasPassword }: SettingRow<unknown>): boolean {
  return secret === true || hasPassword === true
}

export function findFileVariables(row: SettingRow<unknown>): readonly string[] {
  return mayBeFile(row) ? findVariables(row).map(variable => `${variable}_FILE`) : []
}

type Spec<T> = Omit<SettingRow<T>, 'initial' | 'otherwise'>
type Fixed<T> = Spec<T> & { readonly initial: string }
type Open<T> = Spec<T> & { readonly otherwise: string }

export function defineFixed<T>(row: Fixed<T>): Fixed<T> {
  return row
}

export function defineOpen<T>(row: Open<T>): Open<T> {
  return row
}

export type ValueOf<Row> = Row extends Fixed<infer T> ? T : Row extends Open<infer T> ? T | undefined : never
