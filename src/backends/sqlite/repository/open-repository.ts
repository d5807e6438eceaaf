import { randomUUIDv7 } from 'node:crypto'
import { fail } from '../../../core/index.ts'
import { limits, toPlain } from '../../../fhir/index.ts'
import { type Database, openDatabase } from './database.ts'
import { createIndexWriter, INDEX_EDITION, type IndexWriter } from './index-writer.ts'
import { type Names, openNames } from './names.ts'
import {
  findInterruptedLoad,
  formatContent,
  isVersionNumber,
  load,
  loadInBatches,
  parseContent,
  type Repository,
  type RepositoryOptions,
  type Stored,
} from './repository.ts'

/** Each write is several rows: call it within a transaction. */
function createWriters(
  database: Database,
  names: Names,
  index: IndexWriter,
  clock: () => number,
): Pick<Repository, 'save' | 'remove'> {
  const addResource = database.prepare(
    'INSERT INTO resource (tid, id, version, updated, deleted, content) VALUES (?, ?, ?, ?, 0, ?)',
  )
  const addVersion = database.prepare(
    'INSERT INTO version (rid, tid, version, updated, method) VALUES (?, ?, ?, ?, ?)',
  )
  const retire = database.prepare('UPDATE version SET content = ? WHERE rid = ? AND version = ?')
  const renew = database.prepare(
    'UPDATE resource SET version = ?, updated = ?, deleted = ?, content = ? WHERE rid = ?',
  )
  return {
    save(resource, id, before, method = before ? 'PUT' : 'POST') {
      const type = resource.resourceType
      const tid = names.typeId(type)
      const version = (before?.version ?? 0) + 1
      // The times of versions never decrease, even when the clock is set back.
      const updated = Math.max(clock(), before?.updated ?? 0)
      const content = formatContent(resource, id, version, updated)
      const rid = before?.rid ?? Number(addResource.run(tid, id, version, updated, content).lastInsertRowid)
      addVersion.run(rid, tid, version, updated, method)
      if (before) {
        retire.run(before.content, rid, before.version)
        renew.run(version, updated, 0, content, rid)
      }
      const plain = toPlain({ ...resource, id })
      if (before) index.clear(rid)
      if (!index.add(rid, plain)) return TOO_MANY_ROWS
      index.addVersion(rid, version, plain)
      return { rid, type, id, version, updated, deleted: false, content }
    },
    remove(before) {
      const version = before.version + 1
      const updated = Math.max(clock(), before.updated)
      addVersion.run(before.rid, names.typeId(before.type), version, updated, 'DELETE')
      retire.run(before.content, before.rid, before.version)
      renew.run(version, updated, 1, before.content, before.rid)
      index.clear(before.rid)
      index.addVersion(before.rid, version, parseContent(before))
      return { ...before, version, updated, deleted: true }
    },
  }
}

const TOO_MANY_ROWS = fail({
  problem: 'too-costly',
  text: `Cannot store resource: it has more than ${limits.INDEX_ROWS} search values`,
})

const PAGE = 500

/**
 * Rebuilds the index if it was built by an earlier edition, or for another FHIR base: the base decides whether an absolute
 * reference is a local one.
 */
function reindexIfStale(database: Database, index: IndexWriter, baseUrl: string): void {
  const wanted = `${INDEX_EDITION} ${baseUrl}`
  database.transaction(() => {
    const [row] = database.rows(`SELECT value FROM setting WHERE name = 'index'`, [])
    if (row?.[0] === wanted) return
    index.clearAll()
    indexCurrent(database, index)
    indexVersions(database, index)
    database.rows(`INSERT OR REPLACE INTO setting (name, value) VALUES ('index', ?)`, [wanted])
  })
}

function indexCurrent(database: Database, index: IndexWriter): void {
  const current = 'SELECT rid, content FROM resource WHERE rid > ? AND deleted = 0 ORDER BY rid'
  for (const [rid, content] of readPages(database, current))
    index.add(Number(rid), parseContent({ content: String(content) }))
}

function indexVersions(database: Database, index: IndexWriter): void {
  const versions = `SELECT v.seq, v.rid, v.version, coalesce(v.content, r.content)
    FROM version v JOIN resource r ON r.rid = v.rid WHERE v.seq > ? ORDER BY v.seq`
  for (const [, rid, version, content] of readPages(database, versions))
    index.addVersion(Number(rid), Number(version), parseContent({ content: String(content) }))
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

/** Finds a resource, or one version of it, deleted or not. */
function createFinders(database: Database, names: Names): Pick<Repository, 'find' | 'findVersion'> {
  const current = database.prepare(
    'SELECT rid, version, updated, deleted, content FROM resource WHERE tid = ? AND id = ?',
  )
  const version = database.prepare(
    `SELECT r.rid, v.version, v.updated, v.method = 'DELETE', coalesce(v.content, r.content)
     FROM resource r JOIN version v ON v.rid = r.rid WHERE r.tid = ? AND r.id = ? AND v.version = ?`,
  )
  return {
    find: (type, id) => toStored(type, id, current.get(names.typeId(type), id)),
    findVersion: (type, id, text) =>
      isVersionNumber(text)
        ? toStored(type, id, version.get(names.typeId(type), id, Number(text)))
        : undefined,
  }
}

function toStored(type: string, id: string, row: unknown): Stored | undefined {
  if (row === undefined) return undefined
  const [rid, version, updated, deleted, content] = row as [number, number, number, number, string]
  return { rid, type, id, version, updated, deleted: deleted === 1, content }
}

function* listCurrent(database: Database, names: Names) {
  const sql = 'SELECT tid, content FROM resource WHERE deleted = 0 ORDER BY rid'
  for (const [tid, content] of database.each(sql, []))
    yield { type: names.typeOf(Number(tid)), content: String(content) }
}

function removeAll(database: Database, index: IndexWriter): void {
  database.transaction(() => {
    index.clearAll()
    database.exec(`DELETE FROM version; DELETE FROM resource; DELETE FROM setting WHERE name = 'load'`)
  })
}

/** Opens the resources of a file, for a server, or for an import while the server runs. */
export function openRepository({ file, baseUrl, clock = Date.now, maxRows }: RepositoryOptions): Repository {
  const database = openDatabase(file)
  const names = openNames(database)
  reindexIfStale(database, createIndexWriter(database, names, baseUrl), baseUrl)
  const index = createIndexWriter(database, names, baseUrl, maxRows)
  const repository: Repository = {
    baseUrl,
    database,
    names,
    ...createFinders(database, names),
    ...createWriters(database, names, index, clock),
    indexRows: index.countRows,
    newId: () => randomUUIDv7(),
    load: resources => load(repository, resources),
    loadInBatches: (name, resources) => loadInBatches(repository, name, resources),
    findInterruptedLoad: () => findInterruptedLoad(repository),
    count: () => Number(database.rows('SELECT count(*) FROM resource WHERE deleted = 0', [])[0]?.[0]),
    listCurrent: () => listCurrent(database, names),
    removeAll: () => removeAll(database, index),
    close: () => database.close(),
  }
  return repository
}
