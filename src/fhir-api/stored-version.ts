import type { Readable } from 'node:stream'
import type { SentContent } from '../audit/index.ts'
import type { Params, Resource, Shape } from '../fhir/index.ts'
import type { Cursors } from './paging.ts'
import type { Failure } from './response.ts'
import type { FoundEntries } from './searchset.ts'

/** A version of a resource as a backend stores it: the current one, or an old one. */
export interface StoredVersion {
  readonly type: string
  readonly id: string
  /** Binds a write to the content that was checked. */
  readonly etag: string | undefined
  /** Milliseconds since 1970. */
  readonly lastModified: number | undefined
  readonly deleted: boolean
  /** Whether the backend wrote the text itself, so that it certainly is this resource. */
  readonly isTrusted: boolean
  /** Grows with every write of a resource, as far as the backend knows; NaN where it does not. */
  readonly order: number
  /**
   * JSON as stored. A deleted resource has its last content, by which the deletion is checked; undefined if only
   * `readLast` returns that, or if the version is outside the access filter.
   */
  readonly text: string | undefined
  /** The content without the exact digits of its decimals; a failure where `text` is not this resource. */
  parse(): Resource | Failure
  /** The version that `text` states; undefined where the backend knows it without parsing. */
  readonly stated?: StatedVersion
  /** The patients of the content, for the audit trail, if the backend knows them without parsing it. */
  findPatients?(): readonly string[] | undefined
  /** Sets the version that an equal text was found to state, so that this one is not parsed for it. */
  recall?(stated: StatedVersion): void
  /** Streams the JSON of the whole resource, where it is too large for memory and `text` and `parse` leave out long strings. */
  readonly stream?: (() => Promise<Readable | Failure>) | undefined
}

/** The version and the time in the `meta` of a resource. */
export interface StatedVersion {
  readonly etag?: string | undefined
  /** Milliseconds since 1970. */
  readonly lastModified?: number | undefined
}

/** A page of a search. Everything in it is within the access of the request. */
export interface SearchPage extends FoundEntries {
  /** For the audit trail, if the backend finds the patients of several entries at once. */
  readonly contents?: readonly SentContent[]
  /** The parameters that were understood, for the self link (R4 search.html#conformance). */
  readonly used: Params
  readonly shape: Shape
  /** The other pages. */
  readonly cursors: Cursors
}

/** A version in a history. */
export interface HistoryEntry {
  readonly type: string
  readonly id: string
  /** JSON as stored; undefined for a deletion. */
  readonly text: string | undefined
  readonly method: string
  /** `201 Created` */
  readonly status: string
  readonly etag: string | undefined
  readonly lastModified: string | undefined
  /** The patients of the version, and of the content before a deletion. */
  findPatients(): readonly string[] | undefined
}

/** A page of a history, the newest version first. Everything in it is within the access of the request. */
export interface HistoryPage {
  readonly versions: readonly HistoryEntry[]
  readonly total: number | undefined
  readonly cursors: Cursors
  /** Whether no version at all is within the access. If undefined, the API checks the current version. */
  readonly isNothing?: boolean
}
