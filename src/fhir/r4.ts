// Exists only for the type checker, which then never takes an ExactResource for a Resource.
declare const EXACT: unique symbol

interface Exact {
  readonly [EXACT]: true
}

/**
 * A resource whose decimals keep their digits (R4 datatypes.html#decimal: 1.50 is not 1.5): it is stored and sent.
 * `plainOf` gives the Resource, with numbers, that is validated, checked and indexed.
 */
export interface ExactResource extends Exact {
  readonly resourceType: string
  readonly id?: string
  readonly meta?: Resource['meta']
  readonly [name: string]: unknown
}

/** A decimal in an ExactResource. */
export type Decimal = number | (string & Exact)

/** A FHIR resource as it comes over the wire: parsed JSON whose content has not been judged. */
export interface Resource {
  readonly [EXACT]?: never
  readonly resourceType: string
  readonly id?: string
  readonly meta?: {
    readonly versionId?: string
    readonly lastUpdated?: string
    readonly [name: string]: unknown
  }
  readonly [name: string]: unknown
}

export type SearchParameterType =
  | 'token'
  | 'reference'
  | 'string'
  | 'date'
  | 'number'
  | 'quantity'
  | 'uri'
  | 'composite'
  | 'special'

export interface SearchParameter {
  readonly code: string
  readonly type: SearchParameterType
  /** The FHIRPath expression for this one resource type. */
  readonly expression: string
  /** Resource types that a reference may point to; undefined for any. */
  readonly target?: readonly string[]
}

/** One thing wrong with a resource, and where (`Patient.name[0].use`). */
export interface Fault {
  readonly path: string
  readonly code: 'structure' | 'required' | 'value' | 'invariant' | 'code-invalid'
  readonly text: string
}
