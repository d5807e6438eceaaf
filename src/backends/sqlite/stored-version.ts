import type { Resource } from '../../fhir/index.ts'
import type { StoredVersion } from '../../fhir-api/index.ts'
import type { Stored } from './repository/stored.ts'

/** A row of the repository as the API sees it. */
export class SqliteVersion implements StoredVersion {
  readonly stored: Stored

  constructor(stored: Stored) {
    this.stored = stored
  }

  get type(): string {
    return this.stored.type
  }

  get id(): string {
    return this.stored.id
  }

  /** R4 http.html#versioning: versions are weak ETags. */
  get etag(): string {
    return `W/"${this.stored.version}"`
  }

  get lastModified(): number {
    return this.stored.updated
  }

  get deleted(): boolean {
    return this.stored.deleted
  }

  get text(): string {
    return this.stored.content
  }

  parse(): Resource {
    return JSON.parse(this.stored.content)
  }
}
