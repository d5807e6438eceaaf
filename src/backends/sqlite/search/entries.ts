import type { SentContent } from '../../../audit/index.ts'
import type { Resource } from '../../../fhir/index.ts'
import type { SearchEntry } from '../../../fhir-api/index.ts'
import type { Database } from '../repository/database.ts'
import { COLLECTIONS, findContained, findLastWrite, findVersionPatients } from '../stored-version.ts'
import type { Hit } from './planner/run-query.ts'

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
