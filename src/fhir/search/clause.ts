/** R4 search prefixes. */
export type Prefix = 'eq' | 'ne' | 'gt' | 'ge' | 'lt' | 'le' | 'sa' | 'eb' | 'ap'

/**
 * One search parameter of a request: `birthdate=ge1970`, `code:not=…`, `subject:Patient.name=…`. The values of a
 * clause are alternatives (the comma list); all clauses of a search must hold. `holds` in `matches.ts` defines the
 * meaning of each clause on index entries; SQL must agree with it.
 */
export type SearchClause =
  | TokenClause
  | TextClause
  | PartClause
  | StringClause
  | ReferenceClause
  | IdentifierClause
  | DateClause
  | NumberClause
  | QuantityClause
  | UriClause
  | MissingClause
  | ChainClause
  | HasClause

export interface TokenClause {
  readonly kind: 'token'
  readonly parameter: string
  /** `:not`: matches a resource that has no entry with any of the values, also one that has no entry at all. */
  readonly negated: boolean
  readonly values: readonly TokenValue[]
}

export interface TokenValue {
  /** Undefined: any system (`code`). Null: no system (`|code`). */
  readonly system: string | null | undefined
  /** Undefined: any code (`system|`). */
  readonly code: string | undefined
}

/** `:text` on a token: its text starts with one of these (normalized). */
export interface TextClause {
  readonly kind: 'text'
  readonly parameter: string
  readonly values: readonly string[]
}

/** `identifier:contains`, an extension of R4: the identifier's value contains one of these (ASCII letters in lower case). */
export interface PartClause {
  readonly kind: 'part'
  readonly parameter: string
  readonly values: readonly string[]
}

/** `exact` compares `StringEntry.exact`; the others `StringEntry.normal`, and their values are normalized. */
export interface StringClause {
  readonly kind: 'string'
  readonly parameter: string
  readonly match: 'starts' | 'contains' | 'exact'
  readonly values: readonly string[]
}

export interface ReferenceClause {
  readonly kind: 'reference'
  readonly parameter: string
  readonly values: readonly ReferenceValue[]
}

/** A resource of this server, of one of the types (undefined: of any), or a URL of another server. */
export type ReferenceValue =
  | { readonly kind: 'local'; readonly types: readonly string[] | undefined; readonly id: string }
  | { readonly kind: 'url'; readonly url: string }

/** `:identifier` on a reference: `Reference.identifier` is one of these. */
export interface IdentifierClause {
  readonly kind: 'identifier'
  readonly parameter: string
  readonly values: readonly TokenValue[]
}

/** A range to compare with, both ends inclusive. */
export interface Comparison {
  readonly prefix: Prefix
  readonly low: number
  readonly high: number
}

export interface DateClause {
  readonly kind: 'date'
  readonly parameter: string
  readonly values: readonly Comparison[]
}

export interface NumberClause {
  readonly kind: 'number'
  readonly parameter: string
  readonly values: readonly Comparison[]
}

export interface QuantityClause {
  readonly kind: 'quantity'
  readonly parameter: string
  readonly values: readonly QuantityValue[]
}

/** With a system, `code` is compared with the code; without one, with code or unit. */
export interface QuantityValue extends Comparison {
  readonly system: string | undefined
  readonly code: string | undefined
}

export interface UriClause {
  readonly kind: 'uri'
  readonly parameter: string
  /** `below`: the stored URI is the value or below it; `above`: the value is the stored URI or below it. */
  readonly match: 'exact' | 'below' | 'above'
  readonly values: readonly string[]
}

export interface MissingClause {
  readonly kind: 'missing'
  readonly parameter: string
  readonly missing: boolean
}

/** `subject:Patient.name=…`: the reference is to a resource of one of these types that matches its clause. */
export interface ChainClause {
  readonly kind: 'chain'
  readonly parameter: string
  readonly targets: readonly { readonly type: string; readonly clause: SearchClause }[]
}

/** `_has:Observation:patient:code=…`: a resource of `type` that matches the clause refers to this one by `parameter`. */
export interface HasClause {
  readonly kind: 'has'
  readonly type: string
  readonly parameter: string
  readonly clause: SearchClause
}

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
  /** Display or text that belongs to the code, normalized, for `:text`. */
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
  /** The beginning, without case and accents (see `normalize`). */
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
