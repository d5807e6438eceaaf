import type { ExactResource, Fault, FhirProblem } from '../../../fhir/index.ts'
import type { Database } from './database.ts'
import type { Names } from './names.ts'
import type { Stored } from './stored.ts'

export interface RepositoryOptions {
  /** `{dataDir}/fhir.db`, made with its folder when it is not there; or `:memory:`. */
  readonly file: string
  /** The FHIR base: absolute references under it are references to these resources. */
  readonly baseUrl: string
  /** Milliseconds since 1970. */
  readonly clock?: () => number
  /** How many search values a resource may have; unlimited by default, as an import needs. */
  readonly mostRows?: number | undefined
}

/** The resources of one `fhir.db` and their versions. It judges nobody: that is done before it, and in the query. */
export interface Repository {
  readonly baseUrl: string
  readonly database: Database
  readonly names: Names
  find(type: string, id: string): Stored | undefined
  findVersion(type: string, id: string, version: string): Stored | undefined
  /** Writes a new resource (`before` undefined) or the next version of one. `method` is what the history says of it. */
  save(
    resource: ExactResource,
    id: string,
    before: Stored | undefined,
    method?: 'POST' | 'PUT',
  ): Stored | FhirProblem
  /** Writes the deletion of a resource, as a version of it. */
  remove(before: Stored): Stored
  newId(): string
  /** How many rows of the index were written or removed since the file was opened. */
  indexRows(): number
  transaction: Database['transaction']
  /** Writes many resources in one transaction, each under its own id; the same content again changes nothing. */
  load(resources: Iterable<unknown>): LoadReport
  /** How many resources live here. */
  count(): number
  close(): void
}

/** What became of the resources of a load. */
export interface LoadReport {
  readonly created: number
  readonly updated: number
  /** The same content was there already; no version was written. */
  readonly unchanged: number
  readonly refused: readonly RefusedResource[]
}

/** A resource that was not written, and why. */
export interface RefusedResource {
  /** Its place in the load, from 0. */
  readonly index: number
  readonly type: string | undefined
  readonly id: string | undefined
  readonly faults: readonly Fault[]
}
