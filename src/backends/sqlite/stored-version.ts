import type { Resource } from '../../fhir/index.ts'
import type { SearchEntry, StoredVersion } from '../../fhir-api/index.ts'
import type { Database } from './repository/database.ts'
import type { Stored } from './repository/repository.ts'
import type { Hit } from './search/run-query.ts'

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

/** The sequence number of the last write of a resource. */
function findLastWrite(database: Database, rid: number): number {
  const [row] = database.rows('SELECT seq FROM version WHERE rid = ? ORDER BY version DESC LIMIT 1', [rid])
  return Number(row?.[0])
}

/** A resource that a search found as the FHIR API sees it. */
export function toEntry(database: Database, hit: Hit): SearchEntry {
  return new SqliteEntry(database, hit)
}

class SqliteEntry implements SearchEntry {
  readonly #database: Database
  readonly #hit: Hit

  constructor(database: Database, hit: Hit) {
    this.#database = database
    this.#hit = hit
  }

  get type(): string {
    return this.#hit.type
  }

  get id(): string {
    return this.#hit.id
  }

  get text(): string {
    return this.#hit.content
  }

  get order(): number {
    return findLastWrite(this.#database, this.#hit.rid)
  }

  parse(): Resource {
    return JSON.parse(this.#hit.content)
  }
}
