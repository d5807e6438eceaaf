import type { Resource } from '../../../fhir/index.ts'
import type { SearchEntry } from '../../../fhir-api/index.ts'
import type { Database } from '../repository/database.ts'
import { findLastWrite } from '../stored-version.ts'
import type { Hit } from './run-query.ts'

/** A row that a search found as the API sees it. */
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
