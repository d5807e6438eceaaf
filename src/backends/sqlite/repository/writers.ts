import { fail, limits, toPlain } from '../../../fhir/index.ts'
import type { Database } from './database.ts'
import type { IndexWriter } from './index-writer.ts'
import type { Names } from './names.ts'
import type { Repository } from './repository.ts'
import { contentOf, resourceOf } from './stored.ts'

/** Writes versions. Call within a transaction: a version is several rows. */
export function writers(
  database: Database,
  names: Names,
  index: IndexWriter,
  clock: () => number,
): Pick<Repository, 'save' | 'remove'> {
  const addResource = database.prepare('INSERT INTO resource VALUES (NULL, ?, ?, ?, ?, 0, ?)')
  const addVersion = database.prepare('INSERT INTO version VALUES (NULL, ?, ?, ?, ?, ?, NULL)')
  const retire = database.prepare('UPDATE version SET content = ? WHERE rid = ? AND version = ?')
  const renew = database.prepare(
    'UPDATE resource SET version = ?, updated = ?, deleted = ?, content = ? WHERE rid = ?',
  )
  return {
    save(resource, id, before, method = before ? 'PUT' : 'POST') {
      const type = resource.resourceType
      const tid = names.typeId(type)
      const version = (before?.version ?? 0) + 1
      // Versions of a resource are in the order of their times, even when the clock has been set back.
      const updated = Math.max(clock(), before?.updated ?? 0)
      const content = contentOf(resource, id, version, updated)
      const rid = before?.rid ?? Number(addResource.run(tid, id, version, updated, content).lastInsertRowid)
      addVersion.run(rid, tid, version, updated, method)
      if (before) {
        retire.run(before.content, rid, before.version)
        renew.run(version, updated, 0, content, rid)
      }
      const named = toPlain({ ...resource, id })
      if (before) index.clear(rid)
      if (!index.add(rid, named)) return TOO_MANY_ROWS
      index.place(rid, version, named)
      return { rid, type, id, version, updated, deleted: false, content }
    },
    remove(before) {
      const version = before.version + 1
      const updated = Math.max(clock(), before.updated)
      addVersion.run(before.rid, names.typeId(before.type), version, updated, 'DELETE')
      retire.run(before.content, before.rid, before.version)
      renew.run(version, updated, 1, before.content, before.rid)
      index.clear(before.rid)
      index.place(before.rid, version, resourceOf(before))
      return { ...before, version, updated, deleted: true }
    },
  }
}

const TOO_MANY_ROWS = fail({
  problem: 'too-costly',
  text: `Cannot store resource: it has more than ${limits.INDEX_ROWS} search values`,
})
