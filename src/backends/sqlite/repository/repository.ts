import { randomUUIDv7 } from 'node:crypto'
import type { ExactResource, FhirProblem } from '../../../fhir/index.ts'
import { type Database, openDatabase } from './database.ts'
import { finders } from './finders.ts'
import { indexWriter } from './index-writer.ts'
import { type LoadReport, load } from './load.ts'
import { type Names, openNames } from './names.ts'
import { reindexIfStale } from './reindex.ts'
import type { Stored } from './stored.ts'
import { writers } from './writers.ts'

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

/** Opens the resources of a file, for a server or for a load beside it. */
export function openRepository({ file, baseUrl, clock = Date.now, mostRows }: RepositoryOptions): Repository {
  const database = openDatabase(file)
  const names = openNames(database)
  reindexIfStale(database, indexWriter(database, names, baseUrl), baseUrl)
  const index = indexWriter(database, names, baseUrl, mostRows)
  const repository: Repository = {
    baseUrl,
    database,
    names,
    ...finders(database, names),
    ...writers(database, names, index, clock),
    indexRows: index.rows,
    newId: () => randomUUIDv7(),
    transaction: database.transaction,
    load: resources => load(repository, resources),
    count: () => Number(database.rows('SELECT count(*) FROM resource WHERE deleted = 0', [])[0]?.[0]),
    close: () => database.close(),
  }
  return repository
}
