/** A FHIR resource as it comes over the wire: parsed JSON whose content has not been judged. */
export interface Resource {
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
