import type { SettingType } from './setting-types.ts'
import type { Settings } from './settings.ts'

/** One row of the settings table. */
export interface SettingRow<T> {
  /** Its name in the file. */
  readonly name: string
  /** Another name that the file may use. */
  readonly alias?: string
  /** Its environment variable. */
  readonly env: string
  readonly type: SettingType<T>
  /** The default, as one would write it, where it is always the same. */
  readonly initial?: string
  /** The default in words, where it depends on other settings or there is none. */
  readonly otherwise?: string
  /** What it is for, in one sentence. */
  readonly about: string
  readonly secret?: true
  /** Its effective value. */
  readonly of: (settings: Settings) => unknown
}

/** The variables of a setting: the documented one, and the one that follows from its name. Often they are the same. */
export function findVariables({ name, env }: Pick<SettingRow<unknown>, 'name' | 'env'>): readonly string[] {
  return [...new Set([env, name.toUpperCase().replace(/[.-]/g, '_')])]
}

type Spec<T> = Omit<SettingRow<T>, 'initial' | 'otherwise'>
type Fixed<T> = Spec<T> & { readonly initial: string }
type Open<T> = Spec<T> & { readonly otherwise: string }

/** A setting that always has a value, since its default is one. */
export function defineFixed<T>(row: Fixed<T>): Fixed<T> {
  return row
}

/** A setting whose default depends on others, or that has none. */
export function open<T>(row: Open<T>): Open<T> {
  return row
}

/** What a row gives before defaults that depend on other settings. */
export type ValueOf<Row> = Row extends Fixed<infer T> ? T : Row extends Open<infer T> ? T | undefined : never
