import type { Resource } from '../fhir/index.ts'

/** A resource that a search found. */
export interface SearchEntry {
  readonly type: string
  readonly id: string
  /** JSON as stored. */
  readonly text: string
  /** Grows with every write of a resource, as far as the backend knows; NaN where it does not. */
  readonly order: number
  /** The content without the exact digits of its decimals. */
  parse(): Resource
}
