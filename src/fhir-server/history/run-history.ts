import type { Limit, Reach } from '../../consent/index.ts'
import { type HistoryQuery, limits } from '../../fhir/index.ts'
import type { Context } from '../call.ts'
import type { SqlValue } from '../repository/database.ts'
import {
  compartmentCondition,
  compartmentRids,
  containsNoOther,
  panelCondition,
} from '../search/reach-condition.ts'
import type { Scene } from '../search/scene.ts'
import { all, any, joined, name, type Sql, sql } from '../search/sql.ts'

/** Which versions a history is of: of types, each within a reach; of one resource, if `rid` says so. */
export interface HistoryGround {
  readonly parts: readonly { readonly type: string; readonly reach: Reach }[]
  readonly rid?: number | undefined
}

/** A version as a history shows it. */
export interface Version {
  readonly seq: number
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

const COUNTED = 10_000

/** A page of versions, the newest first. */
export function runHistory(
  context: Context,
  ground: HistoryGround,
  query: HistoryQuery,
  after: readonly SqlValue[] | undefined,
): { readonly versions: readonly Version[]; readonly next: readonly SqlValue[] | undefined } {
  const { database, names } = context.repository
  if (ground.parts.length === 0 || query.count === 0) return { versions: [], next: undefined }
  const before = after ? sql`WHERE seq < ${after[0] ?? 0}` : sql``
  const columns = name(`v.seq AS seq, v.tid, r.id, v.version, v.updated, v.method,
    v.version = 1 OR (SELECT p.method FROM version p WHERE p.rid = v.rid AND p.version = v.version - 1) = 'DELETE'`)
  const { text, values } = sql`SELECT * FROM (${versions(context, ground, query, columns)}) ${before}
    ORDER BY seq DESC LIMIT ${query.count + 1}`
  const rows = database.rows(text, values)
  const shown: Version[] = []
  let room = limits.PAGE_CHARACTERS
  for (const [seq, tid, id, version, updated, method, isCreation] of rows.slice(0, query.count)) {
    const content = contentOf(context, Number(seq))
    room -= content.length
    if (room < 0 && shown.length > 0) break
    shown.push({
      seq: Number(seq),
      type: names.typeOf(Number(tid)),
      id: String(id),
      version: Number(version),
      updated: Number(updated),
      method: String(method),
      isCreation: isCreation === 1,
      content,
    })
  }
  const last = shown.at(-1)
  return { versions: shown, next: rows.length > shown.length && last ? [last.seq] : undefined }
}

function contentOf({ repository }: Context, seq: number): string {
  const [row] = repository.database.rows(
    'SELECT coalesce(v.content, r.content) FROM version v JOIN resource r ON r.rid = v.rid WHERE v.seq = ?',
    [seq],
  )
  return String(row?.[0])
}

/** How many versions there are, as far as it is cheap to know. */
export function countVersions(
  context: Context,
  ground: HistoryGround,
  query: HistoryQuery,
): number | undefined {
  if (ground.parts.length === 0) return 0
  const counted = sql`SELECT 1 FROM (${versions(context, ground, query, name('v.seq'))}) LIMIT ${COUNTED + 1}`
  const { text, values } = sql`SELECT count(*) FROM (${counted})`
  const count = Number(context.repository.database.rows(text, values)[0]?.[0])
  return count > COUNTED ? undefined : count
}

function versions(
  { repository, baseUrl, versionAccess }: Context,
  ground: HistoryGround,
  query: HistoryQuery,
  columns: Sql,
): Sql {
  const scene = { names: repository.names, baseUrl, reach: () => [] }
  const parts = ground.parts.map(({ type, reach }) => {
    const tid = repository.names.typeId(type)
    const start = startOf(scene, type, reach, ground.rid)
    return sql`SELECT ${columns} FROM version v JOIN resource r ON r.rid = v.rid WHERE ${all([
      start ? sql`${start} AND +v.tid = ${tid}` : sql`v.tid = ${tid}`,
      ...(reach === 'everything' ? [] : [rowWithin(scene, type, reach, 'v')]),
      ...(reach === 'everything' || versionAccess === 'version' ? [] : [rowWithin(scene, type, reach, 'r')]),
      ...(query.since === undefined ? [] : [sql`v.updated >= ${query.since}`]),
      ...(query.at === undefined ? [] : [wasCurrent(query.at)]),
    ])}`
  })
  return joined(parts, ' UNION ALL ')
}

function startOf(scene: Scene, type: string, reach: Reach, rid: number | undefined): Sql | undefined {
  if (rid !== undefined) return sql`v.rid = ${rid}`
  const members = compartmentRids(scene, type, reach)
  return members && sql`v.rid IN (${members})`
}

type HistoryRow = 'v' | 'r'

/** Whether the version in the row is within the reach: `v` is the version itself, `r` the current one. */
function rowWithin(scene: Scene, type: string, reach: readonly Limit[], row: HistoryRow): Sql {
  return any(reach.map(limit => limitWithin(scene, type, limit, row)))
}

// Search values are kept of current versions that are not deleted, so a granular limit looks into the content.
const CONTENT = { v: 'coalesce(v.content, r.content)', r: 'r.content' } as const

function limitWithin(scene: Scene, type: string, limit: Limit, row: HistoryRow): Sql {
  if (limit.sole) return name('0')
  const parts: Sql[] = []
  if (limit.patient !== undefined) parts.push(compartmentCondition(scene, type, limit.patient, row))
  if (limit.panel) parts.push(panelCondition(scene, type, limit.panel, row))
  const sealed = containsNoOther(scene, limit, row)
  if (sealed) parts.push(sealed)
  if (limit.id !== undefined) parts.push(sql`r.id = ${limit.id}`)
  if (limit.query) parts.push(sql`granular(${name(CONTENT[row])}, ${JSON.stringify(limit.query)})`)
  return all(parts)
}

function wasCurrent({ low, high }: { readonly low: number; readonly high: number }): Sql {
  return sql`v.updated <= ${high} AND NOT EXISTS (SELECT 1 FROM version n
    WHERE n.rid = v.rid AND n.version = v.version + 1 AND n.updated <= ${low})`
}
