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

/** A clause or an index entry of one parameter. */
interface OfParameter<Kind extends string> {
  readonly kind: Kind
  readonly parameter: string
}

interface ValuesClause<Kind extends string, Value> extends OfParameter<Kind> {
  readonly values: readonly Value[]
}

export interface TokenClause extends ValuesClause<'token', TokenValue> {
  /** `:not`: matches a resource that has no entry with any of the values, also one that has no entry at all. */
  readonly negated: boolean
}

export interface TokenValue {
  /** Undefined: any system (`code`). Null: no system (`|code`). */
  readonly system: string | null | undefined
  /** Undefined: any code (`system|`). */
  readonly code: string | undefined
}

/** `:text` on a token: its text starts with one of these (normalized). */
export type TextClause = ValuesClause<'text', string>

/** `identifier:contains`, an extension of R4: the identifier's value contains one of these (ASCII letters in lower case). */
export type PartClause = ValuesClause<'part', string>

/** `exact` compares `StringEntry.exact`; the others `StringEntry.normal`, and their values are normalized. */
export interface StringClause extends ValuesClause<'string', string> {
  readonly match: 'starts' | 'contains' | 'exact'
}

export type ReferenceClause = ValuesClause<'reference', ReferenceValue>

/** A resource of this server, of one of the types (undefined: of any), or a URL of another server. */
export type ReferenceValue =
  | { readonly kind: 'local'; readonly types: readonly string[] | undefined; readonly id: string }
  | { readonly kind: 'url'; readonly url: string }

/** `:identifier` on a reference: `Reference.identifier` is one of these. */
export type IdentifierClause = ValuesClause<'identifier', TokenValue>

/** Both ends inclusive. */
export interface Range {
  readonly low: number
  readonly high: number
}

/** A range to compare with. */
export interface RangeComparison extends Range {
  readonly prefix: Prefix
}

export type DateClause = ValuesClause<'date', RangeComparison>

export type NumberClause = ValuesClause<'number', RangeComparison>

export type QuantityClause = ValuesClause<'quantity', QuantityValue>

/** With a system, `code` is compared with the code; without one, with code or unit. */
export interface QuantityValue extends RangeComparison {
  readonly system: string | undefined
  readonly code: string | undefined
}

export interface UriClause extends ValuesClause<'uri', string> {
  /** `below`: the stored URI is the value or below it; `above`: the value is the stored URI or below it. */
  readonly match: 'exact' | 'below' | 'above'
}

export interface MissingClause extends OfParameter<'missing'> {
  readonly missing: boolean
}

/** `subject:Patient.name=…`: the reference is to a resource of one of these types that matches its clause. */
export interface ChainClause extends OfParameter<'chain'> {
  readonly targets: readonly { readonly type: string; readonly clause: SearchClause }[]
}

/** `_has:Observation:patient:code=…`: a resource of `type` that matches the clause refers to this one by `parameter`. */
export interface HasClause extends OfParameter<'has'> {
  readonly type: string
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

export interface TokenEntry extends OfParameter<'token'> {
  readonly system: string | undefined
  /** Case-sensitive. Booleans are `true` and `false`. */
  readonly code: string | undefined
  /** Display or text that belongs to the code, normalized, for `:text`. */
  readonly text: string | undefined
}

/** Either `type` and `id` (a resource of this server), or `url` (another server, or a canonical), or only an identifier. */
export interface ReferenceEntry extends OfParameter<'reference'> {
  readonly type: string | undefined
  readonly id: string | undefined
  readonly url: string | undefined
  readonly identifierSystem: string | undefined
  readonly identifierValue: string | undefined
}

export interface StringEntry extends OfParameter<'string'> {
  /** The beginning, without case and accents (see `normalize`). */
  readonly normal: string
  /** The whole text as written, for `:exact`. */
  readonly exact: string
}

/** Milliseconds since 1970, both inclusive: `2020` is its first and its last millisecond. Open ends are `earliest` and `latest`. */
export interface DateEntry extends OfParameter<'date'>, Range {}

/** Both inclusive; the same unless the value is a Range. Open ends are `-Number.MAX_VALUE` and `Number.MAX_VALUE`. */
export interface NumberEntry extends OfParameter<'number'>, Range {}

export interface QuantityEntry extends OfParameter<'quantity'>, Range {
  readonly system: string | undefined
  readonly code: string | undefined
  readonly unit: string | undefined
}

export interface UriEntry extends OfParameter<'uri'> {
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
