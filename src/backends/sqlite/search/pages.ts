import { randomBytes } from 'node:crypto'
import { type Cursor, createPages, type Pages } from '../../../fhir-api/index.ts'
import { createSealer } from '../../../store/index.ts'
import type { Database, SqlValue } from '../repository/database.ts'

/** The key is made once and stored with the data, so that links outlive a restart. */
export function openPages(database: Database): Pages {
  const sealer = createSealer(Buffer.from(openKey(database)).toString('base64url'))
  return createPages(sealer, '_page', 'paging link of the embedded server')
}

function openKey(database: Database): Uint8Array {
  return database.transaction(() => {
    const made = randomBytes(32)
    database.rows(`INSERT OR IGNORE INTO setting VALUES ('page-key', ?)`, [made])
    const [row] = database.rows(`SELECT value FROM setting WHERE name = 'page-key'`, [])
    return row?.[0] instanceof Uint8Array ? row[0] : made
  })
}

/** Only cursors that were sealed here are opened again. */
export function parseCursor(cursor: Cursor | undefined): readonly SqlValue[] | undefined {
  return Array.isArray(cursor) ? cursor : undefined
}
