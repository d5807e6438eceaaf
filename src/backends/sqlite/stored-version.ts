import { type Resource, UNKNOWN_PATIENT } from '../../fhir/index.ts'
import type { StoredVersion } from '../../fhir-api/index.ts'
import type { Database } from './repository/database.ts'
import type { Stored } from './repository/repository.ts'

/** A stored row as the FHIR API sees it. */
export class SqliteVersion implements StoredVersion {
  readonly stored: Stored
  readonly isTrusted = true
  readonly #database: Database

  constructor(stored: Stored, database: Database) {
    this.stored = stored
    this.#database = database
  }

  get type(): string {
    return this.stored.type
  }

  get id(): string {
    return this.stored.id
  }

  get etag(): string {
    return toEtag(this.stored)
  }

  get lastModified(): number {
    return this.stored.updated
  }

  get deleted(): boolean {
    return this.stored.deleted
  }

  get order(): number {
    return findLastWrite(this.#database, this.stored.rid)
  }

  get text(): string | undefined {
    return this.stored.content
  }

  parse(): Resource {
    return JSON.parse(this.stored.content)
  }

  findPatients(): readonly string[] | undefined {
    return findVersionPatients(this.#database, this.stored)
  }
}

/** A stored row outside the access, whose content was not read, as the FHIR API sees it. */
export class OutsideVersion extends SqliteVersion {
  override get text(): undefined {
    return undefined
  }
}

type IndexedVersion = Pick<Stored, 'type' | 'rid' | 'version' | 'content'>

/** The resources in a Bundle or in Parameters are not indexed. */
export const COLLECTIONS: ReadonlySet<string> = new Set(['Bundle', 'Parameters'])

/** The patients of a version and of its contained resources, by the index; undefined if only the content shows them. */
export function findVersionPatients(
  database: Database,
  { type, rid, version, content }: IndexedVersion,
): readonly string[] | undefined {
  if (COLLECTIONS.has(type)) return undefined
  const own = database.rows('SELECT patient FROM compartment WHERE rid = ? AND version = ?', [rid, version])
  return [...own.map(([patient]) => String(patient)), ...findContained(database, { rid, version, content })]
}

/** Most resources have no contained ones, which the text shows sooner than the index. */
export function findContained(
  database: Database,
  { rid, version, content }: Omit<IndexedVersion, 'type'>,
): readonly string[] {
  if (!content.includes('"contained"')) return []
  return database
    .rows('SELECT patient FROM contained_patient WHERE rid = ? AND version = ?', [rid, version])
    .flatMap(([patient]) => (patient === UNKNOWN_PATIENT ? [] : [String(patient)]))
}

/** R4 http.html#versioning: versions are weak ETags. */
export function toEtag({ version }: Pick<Stored, 'version'>): string {
  return `W/"${version}"`
}

/** The sequence number of the last write of a resource. */
export function findLastWrite(database: Database, rid: number): number {
  const [row] = database.rows('SELECT seq FROM version WHERE rid = ? ORDER BY version DESC LIMIT 1', [rid])
  return Number(row?.[0])
}
