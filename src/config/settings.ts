import type { ValueOf } from './setting-row.ts'
import type { settingsTable } from './table.ts'

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
  readonly telemetry: TelemetrySettings | undefined
  /** All three URLs and every bind address are loopback. */
  readonly onLoopback: boolean
  /** Whether the tools for developers are on: they are while the lab is. */
  readonly developerTools: boolean
}

export type UpstreamSettings = Settings['fhir']['upstream']

export type Source = 'environment' | 'file' | 'default'

/** How traces are exported, by OpenTelemetry's standard variables. */
export interface TelemetrySettings {
  /** The URL for traces, complete. */
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly timeoutMs: number
  /** Describes this service in every span. */
  readonly resource: Readonly<Record<string, string>>
  readonly sampler: Sampler
  readonly everyMs: number
  readonly batchSize: number
  readonly queueSize: number
}

export interface Sampler {
  /** Whether the decision of the caller is followed, if there is one. */
  readonly isParentBased: boolean
  /** The part of the other traces that is sampled. */
  readonly ratio: number
}
