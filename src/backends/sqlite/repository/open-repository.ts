import { randomUUIDv7 } from 'node:crypto'
import { openDatabase } from './database.ts'
import { finders } from './finders.ts'
import { indexWriter } from './index-writer.ts'
import { load } from './load.ts'
import { openNames } from './names.ts'
import { reindexIfStale } from './reindex.ts'
import type { Repository, RepositoryOptions } from './repository.ts'
import { writers } from './writers.ts'

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
