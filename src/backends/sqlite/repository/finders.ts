import type { Database } from './database.ts'
import type { Names } from './names.ts'
import type { Repository } from './repository.ts'
import type { Stored } from './stored.ts'

// The versions that we give are whole numbers from 1; any other text names none.
const VERSION = /^[1-9]\d{0,14}$/

/** Finds one resource, or one version of it, deleted ones too. */
export function finders(database: Database, names: Names): Pick<Repository, 'find' | 'findVersion'> {
  const current = database.prepare(
    'SELECT rid, version, updated, deleted, content FROM resource WHERE tid = ? AND id = ?',
  )
  const version = database.prepare(
    `SELECT r.rid, v.version, v.updated, v.method = 'DELETE', coalesce(v.content, r.content)
     FROM resource r JOIN version v ON v.rid = r.rid WHERE r.tid = ? AND r.id = ? AND v.version = ?`,
  )
  return {
    find: (type, id) => storedOf(type, id, current.get(names.typeId(type), id)),
    findVersion: (type, id, text) =>
      VERSION.test(text) ? storedOf(type, id, version.get(names.typeId(type), id, Number(text))) : undefined,
  }
}

function storedOf(type: string, id: string, row: unknown): Stored | undefined {
  if (row === undefined) return undefined
  const [rid, version, updated, deleted, content] = row as [number, number, number, number, string]
  return { rid, type, id, version, updated, deleted: deleted === 1, content }
}
