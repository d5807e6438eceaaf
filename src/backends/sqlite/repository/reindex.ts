import type { Database } from './database.ts'
import { INDEX_EDITION, type IndexWriter } from './index-writer.ts'
import { resourceOf } from './stored.ts'

const PAGE = 500

/**
 * Makes the index anew when it was made by other rules: another edition of it, or another FHIR base, which decides
 * whether an absolute reference is one to a resource of ours.
 */
export function reindexIfStale(database: Database, index: IndexWriter, baseUrl: string): void {
  const wanted = `${INDEX_EDITION} ${baseUrl}`
  database.transaction(() => {
    const [row] = database.rows(`SELECT value FROM setting WHERE name = 'index'`, [])
    if (row?.[0] === wanted) return
    index.empty()
    indexCurrent(database, index)
    placeVersions(database, index)
    database.rows(`INSERT OR REPLACE INTO setting VALUES ('index', ?)`, [wanted])
  })
}

function indexCurrent(database: Database, index: IndexWriter): void {
  const current = 'SELECT rid, content FROM resource WHERE rid > ? AND deleted = 0 ORDER BY rid'
  for (const [rid, content] of paged(database, current))
    index.add(Number(rid), resourceOf({ content: String(content) }))
}

function placeVersions(database: Database, index: IndexWriter): void {
  const versions = `SELECT v.seq, v.rid, v.version, coalesce(v.content, r.content)
    FROM version v JOIN resource r ON r.rid = v.rid WHERE v.seq > ? ORDER BY v.seq`
  for (const [, rid, version, content] of paged(database, versions))
    index.place(Number(rid), Number(version), resourceOf({ content: String(content) }))
}

/** Rows in the order of their first column, which is also where the next page begins. */
function* paged(database: Database, sql: string) {
  let after = 0
  for (;;) {
    const rows = database.rows(`${sql} LIMIT ${PAGE}`, [after])
    yield* rows
    if (rows.length < PAGE) return
    after = Number(rows.at(-1)?.[0])
  }
}
