import type { SettingType } from './setting-types.ts'

/** What defaults depend on. */
export interface BaseSettings {
  readonly issuerUrl: string
  readonly fhirBaseUrl: string
  readonly appUrl: string
  readonly bind: readonly string[]
  readonly dataDir: string
  /** All three URLs and every bind address are loopback. */
  readonly onLoopback: boolean
}

/** A setting. Its type, its place in `Settings` and its documentation follow from its row. */
export interface SettingRow<T> {
  readonly name: string
  readonly alias?: string
  /** Its variable. */
  readonly env: string
  readonly type: SettingType<T>
  /** The default as text, if it is constant. */
  readonly initial?: string
  /** The default in words, if it depends on other settings or there is none. */
  readonly otherwise?: string
  readonly derive?: (base: BaseSettings) => unknown
  readonly about: string
  readonly secret?: true
  /** The value may contain a password, and is shown without it. */
  readonly hasPassword?: true
  /** Names of settings of earlier releases that are refused in its favour. */
  readonly replaces?: readonly string[]
}

/** The variable of a setting, and the one that names a file with its value. */
export function listVariables(row: SettingRow<unknown>): readonly string[] {
  return mayBeFile(row) ? [row.env, `${row.env}_FILE`] : [row.env]
}

/** Variables of earlier releases: those that follow from the name of the setting, and those of settings that it replaces. */
export function listFormerVariables(row: SettingRow<unknown>): readonly string[] {
  return [row.name, ...(row.replaces ?? [])]
    .map(deriveVariable)
    .filter(env => env !== row.env)
    .flatMap(env => listVariables({ ...row, env }))
}

function deriveVariable(name: string): string {
  return name.toUpperCase().replace(/[.-]/g, '_')
}

/** A secret may also be the content of a file, which `<variable>_FILE` or `<name>-file` names. */
export function mayBeFile({ secret, hasPassword }: SettingRow<unknown>): boolean {
  return secret === true || hasPassword === true
}

type Spec<T> = Omit<SettingRow<T>, 'initial' | 'otherwise' | 'derive'>
/** Without `env`, the variable follows from the name. */
type Written<Row extends { readonly env: string }> = Omit<Row, 'env'> & Partial<Pick<Row, 'env'>>
type Fixed<T> = Spec<T> & { readonly initial: string }
type Open<T> = Spec<T> & { readonly otherwise: string }
type Derived<T, Default> = Open<T> & { readonly derive: (base: BaseSettings) => Default }

export function defineFixed<T>(row: Written<Fixed<T>>): Fixed<T> {
  return { env: deriveVariable(row.name), ...row }
}

/** Without a default. */
export function defineOpen<T>(row: Written<Open<T>>): Open<T> {
  return { env: deriveVariable(row.name), ...row }
}

/** With a default that depends on other settings. */
export function defineDerived<T, Default = T>(row: Written<Derived<T, Default>>): Derived<T, Default> {
  return { env: deriveVariable(row.name), ...row }
}

export const none = (): readonly never[] => []

export type ValueOf<Row> =
  Row extends Derived<infer T, infer Default>
    ? [Default] extends [T]
      ? T
      : T | Default
    : Row extends Fixed<infer T>
      ? T
      : Row extends Open<infer T>
        ? T | undefined
        : never
