import type { Resource } from '../fhir/index.ts'
import type { Failure } from './failure.ts'

/** A version of a resource as a backend stores it: the current one, or an old one. */
export interface StoredVersion {
  readonly type: string
  readonly id: string
  /** Binds a write to the content that was checked. */
  readonly etag: string | undefined
  /** Milliseconds since 1970. */
  readonly lastModified: number | undefined
  readonly deleted: boolean
  /** Whether the backend wrote the text itself, so that it is this resource. */
  readonly isTrusted: boolean
  /** Grows with every write of a resource, as far as the backend knows; NaN where it does not. */
  readonly order: number
  /**
   * JSON as stored. Of a deleted resource, its last content: a deletion is checked by it. Undefined where the backend
   * does not return it with the deletion; `readLast` may.
   */
  readonly text: string | undefined
  /** The content without the exact digits of its decimals; a failure where `text` is not this resource. */
  parse(): Resource | Failure
}
