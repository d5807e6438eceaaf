import { type ExactResource, type Fault, formatExact, type Resource } from '../../../fhir/index.ts'
import type { Failure } from '../../../fhir-api/index.ts'
import type { Database } from './database.ts'
import type { Names } from './names.ts'

export interface RepositoryOptions {
  /** `{dataDir}/fhir.db`, created with its folder if it does not exist; or `:memory:`. */
  readonly file: string
  /** The FHIR base: absolute references under it are references to these resources. */
  readonly baseUrl: string
  /** Milliseconds since 1970. */
  readonly clock?: () => number
  /** How many search values a resource may have; unlimited by default, as an import needs. */
  readonly mostRows?: number | undefined
}

/** The resources of one `fhir.db` and their versions. It checks no access: the FHIR API and the queries do. */
export interface Repository {
  readonly baseUrl: string
  readonly database: Database
  readonly names: Names
  find(type: string, id: string): Stored | undefined
  findVersion(type: string, id: string, version: string): Stored | undefined
  /** Writes a new resource (`before` undefined) or the next version of one. `method` appears in the history. */
  save(
    resource: ExactResource,
    id: string,
    before: Stored | undefined,
    method?: 'POST' | 'PUT',
  ): Stored | Failure
  /** Writes the deletion of a resource, as a version of it. */
  remove(before: Stored): Stored
  newId(): string
  /** The number of index rows written or removed since the file was opened. */
  indexRows(): number
  transaction: Database['transaction']
  /** Writes many resources in one transaction, each under its own id. Unchanged content writes no version. */
  load(resources: Iterable<unknown>): LoadReport
  /**
   * Writes many resources in several transactions. If it is interrupted, `findInterruptedLoad` returns its name until the
   * same load is repeated.
   */
  loadInBatches(name: string, resources: Iterable<unknown>): void
  findInterruptedLoad(): string | undefined
  /** The number of current resources. */
  count(): number
  /** The current resources, read one by one, as they are at the first one. */
  listCurrent(): Iterable<Pick<Stored, 'type' | 'content'>>
  /** Removes all resources with their versions. */
  removeAll(): void
  close(): void
}

export interface LoadReport {
  readonly created: number
  readonly updated: number
  /** The content was stored already; no version was written. */
  readonly unchanged: number
  readonly refused: readonly RefusedResource[]
}

/** A resource that was not written, and why. */
export interface RefusedResource {
  /** Its position in the load, from 0. */
  readonly index: number
  readonly type: string | undefined
  readonly id: string | undefined
  readonly faults: readonly Fault[]
}

/** A version of a resource as stored: the current one, or an old one. */
export interface Stored {
  readonly rid: number
  readonly type: string
  readonly id: string
  readonly version: number
  /** Milliseconds since 1970. */
  readonly updated: number
  readonly deleted: boolean
  /** JSON. A deleted resource has the content of its last version, by which it is checked (ABSENT-3). */
  readonly content: string
}

/** The content to store, with the server's id, version and time in place of the sender's. */
export function formatContent(resource: ExactResource, id: string, version: number, updated: number): string {
  const { resourceType, id: _id, meta, ...rest } = resource
  const stamp = { ...meta, versionId: String(version), lastUpdated: new Date(updated).toISOString() }
  return formatExact({ resourceType, id, meta: stamp, ...rest })
}

/** Only for content that `formatContent` has written. */
export function parseContent(stored: Pick<Stored, 'content'>): Resource {
  return JSON.parse(stored.content) as Resource
}
