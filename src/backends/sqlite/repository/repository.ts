import { randomUUIDv7 } from 'node:crypto'
import { type Failed, fail, isFailure } from '../../../core/index.ts'
import {
  type ExactResource,
  failFor,
  formatExact,
  isId,
  isResourceType,
  limits,
  type Resource,
  type ResourceFault,
  resourceTypes,
  toPlain,
  validate,
} from '../../../fhir/index.ts'
import type { Failure } from '../../../fhir-api/index.ts'
import { type Database, openDatabase, type SqlValue } from './database.ts'
import {
  createIndexWriter,
  INDEX_EDITION,
  type IndexWriter,
  type PreparedIndex,
  prepareVersion,
} from './index-writer.ts'
import { type Names, openNames } from './names.ts'

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
  readonly faults: readonly ResourceFault[]
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

/** A version that only has to be written. */
export interface PreparedWrite extends Pick<Stored, 'type' | 'id' | 'version'> {
  readonly before: Stored | undefined
  readonly method: 'POST' | 'PUT'
  readonly meta: ExactResource['meta']
  /** The JSON of all other members. */
  readonly rest: string
  readonly index: PreparedIndex
}

// Larger transactions gain little, and SQLite keeps a whole one in its write-ahead log.
const BATCH = 4_000

/** The resources of one `fhir.db` and their versions. It checks no access: the FHIR API and the queries do. */
export class Repository implements Disposable {
  readonly baseUrl: string
  readonly database: Database
  readonly names: Names
  readonly #index: IndexWriter
  readonly #clock: () => number

  constructor({ file, baseUrl, clock = Date.now, maxRows }: RepositoryOptions) {
    this.baseUrl = baseUrl
    this.database = openDatabase(file)
    this.names = openNames(this.database)
    this.#clock = clock
    reindexIfStale(this, createIndexWriter(this.database, this.names, baseUrl))
    this.#index = createIndexWriter(this.database, this.names, baseUrl, maxRows)
  }

  find(type: string, id: string): Stored | undefined {
    const sql = 'SELECT rid, version, updated, deleted, content FROM resource WHERE tid = ? AND id = ?'
    const [row] = this.database.rows(sql, [this.names.typeId(type), id])
    return row && toStored(type, id, row)
  }

  findVersion(type: string, id: string, version: string): Stored | undefined {
    if (!isVersionNumber(version)) return undefined
    const sql = `SELECT r.rid, v.version, v.updated, v.method = 'DELETE', coalesce(v.content, r.content)
      FROM resource r JOIN version v ON v.rid = r.rid WHERE r.tid = ? AND r.id = ? AND v.version = ?`
    const [row] = this.database.rows(sql, [this.names.typeId(type), id, Number(version)])
    return row && toStored(type, id, row)
  }

  /**
   * Prepares a new resource (`before` undefined) or the next version of one, so that `store` only writes. `method` appears in
   * the history.
   */
  prepare(
    resource: ExactResource,
    id: string,
    before: Stored | undefined,
    method: 'POST' | 'PUT' = before ? 'PUT' : 'POST',
  ): PreparedWrite | Failure {
    const index = this.#index.prepare(toPlain({ ...resource, id }))
    if (!index) return TOO_MANY_ROWS
    const { resourceType: type, id: _, meta, ...rest } = resource
    const version = (before?.version ?? 0) + 1
    return { type, id, before, method, version, meta, rest: formatExact(rest), index }
  }

  /** The number of index rows that a write adds and removes, or any number beyond `most`. */
  countRows({ index, before }: Pick<PreparedWrite, 'before'> & Partial<PreparedWrite>, most: number): number {
    return (index?.size ?? 0) + (before ? this.#index.count(before.rid, most) : 0)
  }

  /** Writes a prepared version. It is several rows: call it within a transaction. */
  store(prepared: PreparedWrite): Stored {
    const { type, id, before, version, method, index } = prepared
    const updated = this.#findTime(before)
    const content = formatContent(prepared, updated)
    const rid = before?.rid ?? this.#addResource(type, id, updated, content)
    this.#addVersion({ rid, type, version, updated }, method)
    if (before) this.#replace(before, { version, updated, deleted: false, content })
    this.#index.add(rid, index)
    this.#index.addVersion(rid, version, index)
    return { rid, type, id, version, updated, deleted: false, content }
  }

  /** Prepares and writes a version: call it within a transaction. */
  save(
    resource: ExactResource,
    id: string,
    before: Stored | undefined,
    method?: 'POST' | 'PUT',
  ): Stored | Failure {
    const prepared = this.prepare(resource, id, before, method)
    return isFailure(prepared) ? prepared : this.store(prepared)
  }

  /** Writes the deletion of a resource, as a version of it. Call it within a transaction. */
  remove(before: Stored): Stored {
    const after = { ...before, version: before.version + 1, updated: this.#findTime(before), deleted: true }
    this.#addVersion(after, 'DELETE')
    this.#replace(before, after)
    const { patients, contained } = prepareVersion(parseContent(before), this.names, this.baseUrl)
    this.#index.addVersion(after.rid, after.version, {
      tid: this.names.typeId(before.type),
      patients,
      contained,
    })
    return after
  }

  newId(): string {
    return randomUUIDv7()
  }

  /** Writes valid resources in one transaction, each under its own id or a new one. Unchanged content writes no version. */
  load(resources: Iterable<unknown>): LoadReport {
    const counts = { created: 0, updated: 0, unchanged: 0 }
    const refused: RefusedResource[] = []
    let index = 0
    this.database.transaction(() => {
      for (const candidate of resources) {
        const checked = check(candidate)
        if (isFailure(checked))
          refused.push({ index, type: checked.type, id: checked.id, faults: checked.faults })
        else counts[this.#put(checked)]++
        index++
      }
    })
    return { ...counts, refused }
  }

  /**
   * Writes many resources, which are known to be valid, in several transactions. If it is interrupted, `findInterruptedLoad`
   * returns its name until the same load is repeated.
   */
  loadInBatches(name: string, resources: Iterable<Resource>): void {
    this.database.write(`INSERT OR REPLACE INTO setting (name, value) VALUES ('load', ?)`, name)
    const batch: Resource[] = []
    const store = () =>
      this.database.transaction(() => {
        for (const resource of batch.splice(0)) this.#put(resource as ExactResource)
      })
    for (const resource of resources) {
      batch.push(resource)
      if (batch.length === BATCH) store()
    }
    store()
    this.database.exec(`DELETE FROM setting WHERE name = 'load'`)
  }

  findInterruptedLoad(): string | undefined {
    const [row] = this.database.rows(`SELECT value FROM setting WHERE name = 'load'`, [])
    return row && String(row[0])
  }

  /** The number of current resources of these types. */
  count(types: readonly string[] = resourceTypes): number {
    const sql = `SELECT count(*) FROM resource WHERE deleted = 0
      AND tid IN (SELECT value FROM json_each(?))`
    const tids = JSON.stringify(types.map(type => this.names.typeId(type)))
    return Number(this.database.rows(sql, [tids])[0]?.[0])
  }

  /** The first current resources of a type, by id. */
  listFirst(type: string, limit: number): readonly Resource[] {
    const sql = 'SELECT content FROM resource WHERE tid = ? AND deleted = 0 ORDER BY id LIMIT ?'
    return this.database
      .rows(sql, [this.names.typeId(type), limit])
      .map(([content]) => parseContent({ content: String(content) }))
  }

  /** Removes all resources with their versions. */
  removeAll(): void {
    this.database.transaction(() => {
      this.#index.clearAll()
      this.database.exec(`DELETE FROM version; DELETE FROM resource; DELETE FROM setting WHERE name = 'load'`)
    })
  }

  close(): void {
    this.database.close()
  }

  [Symbol.dispose](): void {
    this.close()
  }

  /** The times of versions never decrease, even when the clock is set back. */
  #findTime(before: Stored | undefined): number {
    return Math.max(this.#clock(), before?.updated ?? 0)
  }

  #addResource(type: string, id: string, updated: number, content: string): number {
    const sql = `INSERT INTO resource (tid, id, version, updated, deleted, content)
      VALUES (?, ?, 1, ?, 0, ?) RETURNING rid`
    return Number(this.database.rows(sql, [this.names.typeId(type), id, updated, content])[0]?.[0])
  }

  #addVersion(after: Pick<Stored, 'rid' | 'type' | 'version' | 'updated'>, method: string): void {
    const { rid, type, version, updated } = after
    const sql = 'INSERT INTO version (rid, tid, version, updated, method) VALUES (?, ?, ?, ?, ?)'
    this.database.write(sql, rid, this.names.typeId(type), version, updated, method)
  }

  /** The content of the version before moves to its own row, and its search values are removed. */
  #replace(before: Stored, after: Pick<Stored, 'version' | 'updated' | 'deleted' | 'content'>): void {
    const { version, updated, deleted, content } = after
    const retire = 'UPDATE version SET content = ? WHERE rid = ? AND version = ?'
    this.database.write(retire, before.content, before.rid, before.version)
    const renew = 'UPDATE resource SET version = ?, updated = ?, deleted = ?, content = ? WHERE rid = ?'
    this.database.write(renew, version, updated, deleted, content, before.rid)
    this.#index.clear(before.rid)
  }

  #put(resource: ExactResource): 'created' | 'updated' | 'unchanged' {
    const id = resource.id ?? this.newId()
    const before = resource.id === undefined ? undefined : this.find(resource.resourceType, id)
    if (before && isSame(before, resource)) return 'unchanged'
    const saved = this.save(resource, id, before, 'PUT')
    if (isFailure(saved))
      throw new Error(`Cannot load ${resource.resourceType}/${id}: it has too many search values`)
    return before ? 'updated' : 'created'
  }
}

/** Opens the resources of a file, for a server, or for an import while the server runs. */
export function openRepository(options: RepositoryOptions): Repository {
  return new Repository(options)
}

/** From a row with the columns rid, version, updated, deleted and content. */
export function toStored<Content = string>(
  type: string,
  id: string,
  row: readonly SqlValue[],
): Omit<Stored, 'content'> & { readonly content: Content } {
  const [rid, version, updated, deleted, content] = row as [number, number, number, number, Content]
  return { rid, type, id, version, updated, deleted: deleted === 1, content }
}

const TOO_MANY_ROWS = failFor('index-rows-too-many', { most: limits.INDEX_ROWS })

// Versions are whole numbers from 1; any other text names none.
const VERSION = /^[1-9]\d{0,14}$/

export function isVersionNumber(text: string): boolean {
  return VERSION.test(text)
}

/** The content to store, with the server's id, version and time in place of the sender's. */
function formatContent(
  { type, id, version, meta, rest }: Pick<PreparedWrite, 'type' | 'id' | 'version' | 'meta' | 'rest'>,
  updated: number,
): string {
  const stamp = { ...meta, versionId: String(version), lastUpdated: new Date(updated).toISOString() }
  const head = `{"resourceType":"${type}","id":"${id}","meta":${formatExact(stamp)}`
  return rest === '{}' ? `${head}}` : `${head},${rest.slice(1)}`
}

/** Only for content that `formatContent` has written. */
export function parseContent(stored: Pick<Stored, 'content'>): Resource {
  return JSON.parse(stored.content) as Resource
}

// The server serves AuditEvents from the audit trail only, so that nobody could read one that is loaded here.
const UNREADABLE: ResourceFault = {
  path: 'AuditEvent',
  code: 'structure',
  text: 'Not imported: the server serves AuditEvents from its own audit trail, so this one could never be read',
}

function check(candidate: unknown): ExactResource | (Omit<RefusedResource, 'index'> & Failed) {
  const { resourceType, id } = (
    typeof candidate === 'object' && candidate ? candidate : {}
  ) as Partial<ExactResource>
  const type = typeof resourceType === 'string' && isResourceType(resourceType) ? resourceType : undefined
  const named = typeof id === 'string' ? id : undefined
  const refuse = (faults: readonly ResourceFault[]) => fail({ type, id: named, faults })
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

function isSame(before: Stored, resource: ExactResource): boolean {
  if (before.deleted) return false
  const { resourceType: type, id: _, meta, ...rest } = resource
  const { id, version, updated } = before
  return before.content === formatContent({ type, id, version, meta, rest: formatExact(rest) }, updated)
}

const PAGE = 500

/**
 * Rebuilds the index if it was built by an earlier edition, or for another FHIR base: the base decides whether an absolute
 * reference is a local one.
 */
function reindexIfStale(
  repository: Pick<Repository, 'database' | 'names' | 'baseUrl'>,
  index: IndexWriter,
): void {
  const { database, baseUrl } = repository
  const wanted = `${INDEX_EDITION} ${baseUrl}`
  database.transaction(() => {
    const [row] = database.rows(`SELECT value FROM setting WHERE name = 'index'`, [])
    if (row?.[0] === wanted) return
    index.clearAll()
    indexCurrent(database, index)
    indexVersions(repository, index)
    database.rows(`INSERT OR REPLACE INTO setting (name, value) VALUES ('index', ?)`, [wanted])
  })
}

function indexCurrent(database: Database, index: IndexWriter): void {
  const current = 'SELECT rid, content FROM resource WHERE rid > ? AND deleted = 0 ORDER BY rid'
  for (const [rid, content] of readPages(database, current))
    indexOne(index, Number(rid), parseContent({ content: String(content) }))
}

function indexOne(index: IndexWriter, rid: number, resource: Resource): void {
  const prepared = index.prepare(resource)
  if (prepared) index.add(rid, prepared)
}

function indexVersions(
  { database, names, baseUrl }: Pick<Repository, 'database' | 'names' | 'baseUrl'>,
  index: IndexWriter,
): void {
  const versions = `SELECT v.seq, v.rid, v.version, coalesce(v.content, r.content)
    FROM version v JOIN resource r ON r.rid = v.rid WHERE v.seq > ? ORDER BY v.seq`
  for (const [, rid, version, content] of readPages(database, versions))
    index.addVersion(
      Number(rid),
      Number(version),
      prepareVersion(parseContent({ content: String(content) }), names, baseUrl),
    )
}

/** Rows in the order of their first column, by which the next page is found. */
function* readPages(database: Database, sql: string) {
  let after = 0
  for (;;) {
    const rows = database.rows(`${sql} LIMIT ${PAGE}`, [after])
    yield* rows
    if (rows.length < PAGE) return
    after = Number(rows.at(-1)?.[0])
  }
}
