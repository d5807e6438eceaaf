import { randomBytes } from 'node:crypto'
import type { Params } from '../../../fhir/index.ts'
import { createSealer } from '../../../store/index.ts'
import type { Database, SqlValue } from '../repository/database.ts'

/** Where a search or a history goes on: what was asked, and the place of the last thing shown. */
export interface Place {
  /** What the page is of: an interaction's kind and its address. A page of one is not a page of another. */
  readonly of: string
  readonly params: Params
  /** The sort keys of the last thing shown, and its number. */
  readonly after: readonly SqlValue[]
  /** The grant that got the link (`holderOf`). */
  readonly holder: string
}

/**
 * Paging links: sealed, so that a link shows nothing of what was searched and sorted by and nobody writes one.
 * Only the grant that got it can use it, and what it goes on with is judged anew.
 */
export interface Pages {
  seal(place: Place): string
  /** Undefined for what was not sealed here. */
  open(text: string): Place | undefined
}

/** The name of the parameter that carries a page. */
export const PAGE = '_page'

const PURPOSE = 'paging link of the embedded server'

/** The key is made once and kept with the data, so that links outlive a restart. */
export function openPages(database: Database): Pages {
  const sealer = createSealer(Buffer.from(keyOf(database)).toString('base64url'))
  return {
    seal: place => sealer.seal(JSON.stringify(place), PURPOSE),
    open(text) {
      const opened = sealer.tryOpen(text, PURPOSE)
      return opened === undefined ? undefined : JSON.parse(opened)
    },
  }
}

function keyOf(database: Database): Uint8Array {
  return database.transaction(() => {
    const made = randomBytes(32)
    database.rows(`INSERT OR IGNORE INTO setting VALUES ('page-key', ?)`, [made])
    const [row] = database.rows(`SELECT value FROM setting WHERE name = 'page-key'`, [])
    return row?.[0] instanceof Uint8Array ? row[0] : made
  })
}
