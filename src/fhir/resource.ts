import { isRecord } from '../core/index.ts'

// Exists only for the type checker, which then never takes an ExactResource for a Resource.
declare const EXACT: unique symbol

interface Exact {
  readonly [EXACT]: true
}

/**
 * A resource whose decimals keep their digits (R4 datatypes.html#decimal: 1.50 is not 1.5), for storage and responses.
 * `toPlain` returns the Resource, with numbers, for validation, access checks and the index.
 */
export interface ExactResource extends Exact {
  readonly resourceType: string
  readonly id?: string
  readonly meta?: Resource['meta']
  readonly [name: string]: unknown
}

/** A decimal in an ExactResource. */
export type Decimal = number | (string & Exact)

/** A FHIR resource as received: parsed JSON that is not validated. */
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

/** An error in a resource, and its path (`Patient.name[0].use`). */
export interface ResourceFault {
  readonly path: string
  readonly code: 'structure' | 'required' | 'value' | 'invariant' | 'code-invalid' | 'not-supported'
  readonly text: string
  /** A recommendation of R4, not an error. */
  readonly severity?: 'warning'
}

/** A JSON object with a `resourceType`; the rest is not validated. */
export function isResource(value: unknown): value is Resource {
  return isRecord(value) && typeof value.resourceType === 'string'
}

/** A deep copy of a JSON value. `structuredClone` takes ten times as long. */
export function cloneJson(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(cloneJson)
  if (!isRecord(value)) return value
  // A spread copies a member called `__proto__` as a member.
  const copy: Record<string, unknown> = { ...value }
  for (const name of Object.keys(copy)) {
    const item = copy[name]
    if (typeof item === 'object' && item !== null) copy[name] = cloneJson(item)
  }
  return copy
}
