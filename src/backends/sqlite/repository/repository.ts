import { type Failed, fail, isFailure } from '../../../core/index.ts'
import {
  type ExactResource,
  type Fault,
  formatExact,
  isId,
  isResourceType,
  type Resource,
  toPlain,
  validate,
} from '../../../fhir/index.ts'
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
  readonly maxRows?: number | undefined
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

// Versions are whole numbers from 1; any other text names none.
const VERSION = /^[1-9]\d{0,14}$/

export function isVersionNumber(text: string): boolean {
  return VERSION.test(text)
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

// The server serves AuditEvents from the audit trail only, so that nobody could read one that is loaded here.
const UNREADABLE: Fault = {
  path: 'AuditEvent',
  code: 'structure',
  text: 'Not imported: the server serves AuditEvents from its own audit trail, so nobody could read this one',
}

/** Writes valid resources under their own ids, or new ones, in one transaction. */
export function load(repository: Repository, resources: Iterable<unknown>): LoadReport {
  const counts = { created: 0, updated: 0, unchanged: 0 }
  const refused: RefusedResource[] = []
  let index = 0
  repository.database.transaction(() => {
    for (const candidate of resources) {
      const checked = check(candidate)
      if (isFailure(checked))
        refused.push({ index, type: checked.type, id: checked.id, faults: checked.faults })
      else counts[put(repository, checked)]++
      index++
    }
  })
  return { ...counts, refused }
}

// Larger transactions gain little, and SQLite keeps a whole one in its write-ahead log.
const BATCH = 1_000

/** Loads resources in transactions of a bounded size. Until the last one is written, `name` is stored. */
export function loadInBatches(repository: Repository, name: string, resources: Iterable<unknown>): void {
  const { database } = repository
  database.rows(`INSERT OR REPLACE INTO setting (name, value) VALUES ('load', ?)`, [name])
  const batch: unknown[] = []
  for (const resource of resources) {
    batch.push(resource)
    if (batch.length === BATCH) load(repository, batch.splice(0))
  }
  load(repository, batch)
  database.exec(`DELETE FROM setting WHERE name = 'load'`)
}

/** The name of the load that was interrupted, if any. */
export function findInterruptedLoad({ database }: Repository): string | undefined {
  const [row] = database.rows(`SELECT value FROM setting WHERE name = 'load'`, [])
  return row && String(row[0])
}

function check(candidate: unknown): ExactResource | (Omit<RefusedResource, 'index'> & Failed) {
  const { resourceType, id } = (
    typeof candidate === 'object' && candidate ? candidate : {}
  ) as Partial<ExactResource>
  const type = typeof resourceType === 'string' && isResourceType(resourceType) ? resourceType : undefined
  const named = typeof id === 'string' ? id : undefined
  const refuse = (faults: readonly Fault[]) => fail({ type, id: named, faults })
  if (type === undefined)
    return refuse([{ path: 'resourceType', code: 'structure', text: 'Not an R4 resource type' }])
  if (type === 'AuditEvent') return refuse([UNREADABLE])
  if (id !== undefined && !isId(String(id)))
    return refuse([
      { path: `${type}.id`, code: 'value', text: 'Not an id: 1 to 64 letters, digits, dots, hyphens' },
    ])
  const faults = validate(toPlain(candidate as ExactResource))
  return faults.length > 0 ? refuse(faults) : (candidate as ExactResource)
}

function put(repository: Repository, resource: ExactResource): 'created' | 'updated' | 'unchanged' {
  const id = resource.id ?? repository.newId()
  const before = resource.id === undefined ? undefined : repository.find(resource.resourceType, id)
  if (before && isSame(before, resource)) return 'unchanged'
  const saved = repository.save(resource, id, before, 'PUT')
  if (isFailure(saved))
    throw new Error(`Cannot load ${resource.resourceType}/${id}: it has too many search values`)
  return before ? 'updated' : 'created'
}

function isSame(before: Stored, resource: ExactResource): boolean {
  return (
    !before.deleted && before.content === formatContent(resource, before.id, before.version, before.updated)
  )
}
