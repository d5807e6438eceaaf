import type { SpanExportOptions } from '../web/http/index.ts'
import type { ValueOf } from './setting-row.ts'
import type { settingsTable } from './table.ts'

/** The type of the settings, which follows from the table. `configuration.ts` reads their values. */
type Table = typeof settingsTable

/** The place of a setting in `Settings`: `fhir.upstream.profile`. */
export type SettingKey = keyof Table

type Values = { readonly [Key in SettingKey]: ValueOf<Table[Key]> }

type First<Key> = Key extends `${infer Name}.${string}` ? Name : Key
type Below<Flat, Name extends string> = {
  readonly [Key in keyof Flat as Key extends `${Name}.${infer Rest}` ? Rest : never]: Flat[Key]
}
type Tree<Flat> = {
  readonly [Name in First<keyof Flat> & string]: Name extends keyof Flat
    ? Flat[Name]
    : Tree<Below<Flat, Name>>
}

/** The values of the rows, before anything is added. */
export type SettingTree = Tree<Values>

/** The effective settings, read once at the start. No URL has a trailing slash, and paths are absolute. */
export interface Settings extends SettingTree {
  readonly metrics: SettingTree['metrics'] & {
    /** Who may read `/metrics` on the ports of the servers. */
    readonly access: 'loopback' | 'everyone' | 'nobody'
  }
  /** Undefined: traces are not exported. */
  readonly telemetry: SpanExportOptions | undefined
  /** All three URLs and every bind address are loopback. */
  readonly onLoopback: boolean
  /** Whether the tools for developers are on: they are while the lab is. */
  readonly developerTools: boolean
}

export type UpstreamSettings = Settings['fhir']['upstream']

export type SettingSource = 'environment' | 'file' | 'default'
