import { type AccessFilter, satisfies } from '../../../smart/index.ts'
import type { Context } from '../call.ts'
import { resourceOf } from '../repository/stored.ts'
import { sql } from '../search/sql.ts'

/** Which versions a history is of: of types, each within a reach; of one resource, if `rid` says so. */
export interface HistoryScope {
  readonly parts: readonly { readonly type: string; readonly filter: AccessFilter }[]
  readonly rid?: number | undefined
}

/** A version as a history shows it. */
export interface Version {
  readonly type: string
  readonly id: string
  readonly version: number
  readonly updated: number
  readonly method: string
  /** The first version, or the first after a deletion. */
  readonly isCreation: boolean
  /** JSON. Of a deletion, that of the version before: it is judged by it and not shown. */
  readonly content: string
}

export interface ReadVersion {
  readonly version: Version
  readonly seq: number
  /** Whether it is within the reach. */
  readonly isSeen: boolean
}

/**
 * Reads versions one after the other, in the order of the list, and judges those whose content decides: old versions and
 * deleted resources, of which there are no search values.
 */
export function* readVersions(
  context: Context,
  { parts }: HistoryScope,
  seqs: readonly number[],
): Generator<ReadVersion> {
  const { database, names } = context.repository
  const reaches = new Map(parts.map(({ type, filter }) => [type, filter]))
  const { text, values } = sql`SELECT v.seq, v.tid, r.id, v.version, v.updated, v.method,
      v.version = 1 OR (SELECT p.method FROM version p WHERE p.rid = v.rid AND p.version = v.version - 1) = 'DELETE',
      v.content,
      CASE WHEN v.content IS NULL OR r.deleted = 1 THEN r.content END, r.deleted
    FROM json_each(${JSON.stringify(seqs)}) j CROSS JOIN version v ON v.seq = j.value
    CROSS JOIN resource r ON r.rid = v.rid`
  for (const row of database.each(text, values)) {
    const [seq, tid, id, version, updated, method, isCreation, old, current, isDeleted] = row
    const type = names.typeOf(Number(tid))
    const content = String(old ?? current)
    const filter = reaches.get(type) ?? []
    const isJudged = hasQuery(filter) && (old !== null || isDeleted === 1)
    // While the resource lives, its search values have told that the current version is within the reach.
    const judged = isJudged
      ? new Set([
          content,
          ...(isDeleted === 1 && context.versionAccess === 'current' ? [String(current)] : []),
        ])
      : []
    yield {
      seq: Number(seq),
      isSeen: [...judged].every(it =>
        satisfies(resourceOf({ content: it }), filter, context.baseUrl, context.membership),
      ),
      version: {
        ...{
          type,
          id: String(id),
          version: Number(version),
          updated: Number(updated),
          method: String(method),
        },
        ...{ isCreation: isCreation === 1, content },
      },
    }
  }
}

function hasQuery(filter: AccessFilter): boolean {
  return filter !== 'everything' && filter.some(({ query }) => query !== undefined)
}
