/**
 * A value of a search parameter in a resource, in the form that the index stores and a search compares. A parameter
 * without an entry is missing (`:missing=true`).
 */
export type IndexEntry =
  | TokenEntry
  | ReferenceEntry
  | StringEntry
  | DateEntry
  | NumberEntry
  | QuantityEntry
  | UriEntry

export interface TokenEntry {
  readonly kind: 'token'
  readonly parameter: string
  readonly system: string | undefined
  /** Case-sensitive. Booleans are `true` and `false`. */
  readonly code: string | undefined
  /** Display or text that belongs to the code, normalised, for `:text`. */
  readonly text: string | undefined
}

/** Either `type` and `id` (a resource of this server), or `url` (another server, or a canonical), or only an identifier. */
export interface ReferenceEntry {
  readonly kind: 'reference'
  readonly parameter: string
  readonly type: string | undefined
  readonly id: string | undefined
  readonly url: string | undefined
  readonly identifierSystem: string | undefined
  readonly identifierValue: string | undefined
}

export interface StringEntry {
  readonly kind: 'string'
  readonly parameter: string
  /** The beginning, without case and accents (see `normalise`). */
  readonly normal: string
  /** The whole text as written, for `:exact`. */
  readonly exact: string
}

/** Milliseconds since 1970, both inclusive: `2020` is its first and its last millisecond. Open ends are `earliest` and `latest`. */
export interface DateEntry {
  readonly kind: 'date'
  readonly parameter: string
  readonly low: number
  readonly high: number
}

/** Both inclusive; the same unless the value is a Range. Open ends are `-Number.MAX_VALUE` and `Number.MAX_VALUE`. */
export interface NumberEntry {
  readonly kind: 'number'
  readonly parameter: string
  readonly low: number
  readonly high: number
}

export interface QuantityEntry {
  readonly kind: 'quantity'
  readonly parameter: string
  readonly low: number
  readonly high: number
  readonly system: string | undefined
  readonly code: string | undefined
  readonly unit: string | undefined
}

export interface UriEntry {
  readonly kind: 'uri'
  readonly parameter: string
  readonly uri: string
}

/** One value that the path of a parameter selects, and its type. */
export interface ExtractedValue {
  readonly parameter: string
  readonly type: string
  readonly binding: string | undefined
  readonly value: unknown
  readonly baseUrl: string
}
