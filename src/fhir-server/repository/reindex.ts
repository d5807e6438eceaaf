import type { Database } from './database.ts'
import { INDEX_EDITION, type IndexWriter } from './index-writer.ts'
import type { Names } from './names.ts'
import { INDEX_TABLES } from './schema.ts'
import { resourceOf } from './stored.ts'

const PAGE = 500

/**
 * Makes the index anew when it was made by other rules: another edition of it, or another FHIR base, which decides
 * whether an absolute reference is one to a resource of ours.
 */
export function reindexIfStale(database: Database, names: Names, index: IndexWriter, baseUrl: string): void {
  const wanted = `${INDEX_EDITION} ${baseUrl}`
  database.transaction(() => {
    const [row] = database.rows(`SELECT value FROM setting WHERE name = 'index'`, [])
    if (row?.[0] === wanted) return
    for (const table of INDEX_TABLES) database.exec(`DELETE FROM ${table}`)
    reindexCurrent(database, names, index)
    replaceAll(database, names, index)
    database.rows(`INSERT OR REPLACE INTO setting VALUES ('index', ?)`, [wanted])
  })
}

function reindexCurrent(database: Database, names: Names, index: IndexWriter): void {
  for (const [rid, tid, content] of paged(
    database,
    'SELECT rid, tid, content FROM resource WHERE rid > ? AND deleted = 0 ORDER BY rid',
  ))
    index.replace(Number(rid), names.typeOf(Number(tid)), undefined, resourceOf({ content: String(content) }))
}

function replaceAll(database: Database, _names: Names, index: IndexWriter): void {
  for (const [, rid, version, content] of paged(
    database,
    `SELECT v.seq, v.rid, v.version, coalesce(v.content, r.content)
     FROM version v JOIN resource r ON r.rid = v.rid WHERE v.seq > ? ORDER BY v.seq`,
  ))
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
