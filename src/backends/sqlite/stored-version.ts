import type { SentContent } from '../../audit/index.ts'
import { type Resource, UNKNOWN_PATIENT } from '../../fhir/index.ts'
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

  findPatients(): readonly string[] | undefined {
    return findVersionPatients(this.#database, this.stored)
  }
}

type IndexedVersion = Pick<Stored, 'type' | 'rid' | 'version' | 'content'>

/** The resources in a Bundle or in Parameters are not indexed. */
const COLLECTIONS: ReadonlySet<string> = new Set(['Bundle', 'Parameters'])

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
function findContained(
  database: Database,
  { rid, version, content }: Omit<IndexedVersion, 'type'>,
): readonly string[] {
  if (!content.includes('"contained"')) return []
  return database
    .rows('SELECT patient FROM contained_patient WHERE rid = ? AND version = ?', [rid, version])
    .flatMap(([patient]) => (patient === UNKNOWN_PATIENT ? [] : [String(patient)]))
}

/** The resources of a page, for the audit trail: the index finds the patients of nearly all of them at once. */
export function toContents(database: Database, hits: readonly Hit[]): readonly SentContent[] {
  const isSingle = ({ type }: Hit) => COLLECTIONS.has(type) || type === 'Binary'
  const indexed = hits.filter(hit => !isSingle(hit))
  const page = { type: 'Bundle', id: '', text: undefined, parse: () => undefined }
  return [
    { ...page, findPatients: () => findPagePatients(database, indexed) },
    ...hits.filter(isSingle).map(hit => toEntry(database, hit)),
  ]
}

function findPagePatients(database: Database, hits: readonly Hit[]): readonly string[] {
  const patients = new Set(hits.flatMap(hit => findContained(database, hit)))
  for (const [version, some] of Map.groupBy(hits, hit => hit.version)) {
    const rows = database.rows(
      `SELECT DISTINCT c.patient FROM json_each(?) sent
       CROSS JOIN compartment c ON c.rid = sent.value AND c.version = ?`,
      [JSON.stringify(some.map(({ rid }) => rid)), version],
    )
    for (const [patient] of rows) patients.add(String(patient))
  }
  return [...patients]
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

  findPatients(): readonly string[] | undefined {
    return findVersionPatients(this.#database, this.#hit)
  }
}
