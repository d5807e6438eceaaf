import { createCipheriv, createDecipheriv } from 'node:crypto'
import { createRandomToken, type Store } from '../../store/index.ts'
import type { TrailPosition } from './find.ts'

/**
 * Ids of AuditEvents and links to a page of them. The number of a record counts the activity of all users, so an id is the
 * record's position, encrypted: it reveals neither a number nor an order.
 */
export interface EventIds {
  format(position: TrailPosition): string
  /** Undefined if no record has this id. */
  parse(id: string): TrailPosition | undefined
}

const opened = new WeakMap<Store['db'], Promise<EventIds>>()

/** All processes that share a database have the same ids, whatever the secret. */
export function openEventIds(store: Pick<Store, 'db'>): Promise<EventIds> {
  const known = opened.get(store.db)
  if (known) return known
  const ids = readKey(store).then(createEventIds)
  opened.set(store.db, ids)
  ids.catch(() => opened.delete(store.db))
  return ids
}

const PURPOSE = 'AuditEvent.id'

async function readKey({ db }: Pick<Store, 'db'>): Promise<Buffer> {
  const find = () => db.selectFrom('audit_key').select('key').where('purpose', '=', PURPOSE)
  const found = await find().executeTakeFirst()
  if (!found)
    await db
      .insertInto('audit_key')
      .values({ purpose: PURPOSE, key: createRandomToken() })
      .onConflict(conflict => conflict.doNothing())
      .execute()
  return Buffer.from((found ?? (await find().executeTakeFirstOrThrow())).key, 'base64url')
}

const ID = /^[0-9a-f]{32}$/
const BLOCK_BYTES = 16
/** Of the time and of the number. */
const NUMBER_BYTES = 6

/** A position is one block of AES, so that no mode of operation is needed. */
export function createEventIds(key: Buffer): EventIds {
  const cipher = createCipheriv('aes-256-ecb', key, null).setAutoPadding(false)
  const decipher = createDecipheriv('aes-256-ecb', key, null).setAutoPadding(false)
  return {
    format({ at, id }) {
      const block = Buffer.alloc(BLOCK_BYTES)
      block.writeUIntBE(at, 0, NUMBER_BYTES)
      block.writeUIntBE(id, NUMBER_BYTES, NUMBER_BYTES)
      return cipher.update(block).toString('hex')
    },
    parse(text) {
      if (!ID.test(text)) return undefined
      const block = decipher.update(Buffer.from(text, 'hex'))
      const isOurs = block.readUInt32BE(2 * NUMBER_BYTES) === 0
      return isOurs
        ? { at: block.readUIntBE(0, NUMBER_BYTES), id: block.readUIntBE(NUMBER_BYTES, NUMBER_BYTES) }
        : undefined
    },
  }
}
