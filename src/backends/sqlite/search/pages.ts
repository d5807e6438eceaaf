import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import type { Params } from '../../../fhir/index.ts'
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

const ALGORITHM = 'aes-256-gcm'
const [IV, TAG] = [12, 16]

/** The key is made once and kept with the data, so that links outlive a restart. */
export function openPages(database: Database): Pages {
  const key = keyOf(database)
  return {
    seal(place) {
      const iv = randomBytes(IV)
      const cipher = createCipheriv(ALGORITHM, key, iv)
      const sealed = Buffer.concat([iv, cipher.update(JSON.stringify(place), 'utf8'), cipher.final()])
      return Buffer.concat([sealed, cipher.getAuthTag()]).toString('base64url')
    },
    open(text) {
      const sealed = Buffer.from(text, 'base64url')
      if (sealed.length <= IV + TAG || sealed.toString('base64url') !== text) return undefined
      const decipher = createDecipheriv(ALGORITHM, key, sealed.subarray(0, IV))
      decipher.setAuthTag(sealed.subarray(-TAG))
      try {
        const opened = Buffer.concat([decipher.update(sealed.subarray(IV, -TAG)), decipher.final()])
        return JSON.parse(opened.toString('utf8')) as Place
      } catch {
        return undefined
      }
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
