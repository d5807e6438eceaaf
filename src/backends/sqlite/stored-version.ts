import type { Resource } from '../../fhir/index.ts'
import type { StoredVersion } from '../../fhir-api/index.ts'
import type { Database } from './repository/database.ts'
import type { Stored } from './repository/stored.ts'

/** A row of the repository as the API sees it. */
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

  get text(): string {
    return this.stored.content
  }

  parse(): Resource {
    return JSON.parse(this.stored.content)
  }
}

/** R4 http.html#versioning: versions are weak ETags. */
export function toEtag({ version }: Pick<Stored, 'version'>): string {
  return `W/"${version}"`
}

/** The number of the last write of a resource, in the order of all writes. */
export function findLastWrite(database: Database, rid: number): number {
  const [row] = database.rows('SELECT seq FROM version WHERE rid = ? ORDER BY version DESC LIMIT 1', [rid])
  return Number(row?.[0])
}
