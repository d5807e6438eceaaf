import { fail, type HistoryQuery, limits } from '../../../fhir/index.ts'
import { type AccessFilter, type ConstraintGroup, groupConstraints } from '../../../smart/index.ts'
import type { Context } from '../call.ts'
import { VERSIONS_JUDGED } from '../limits.ts'
import type { Problem } from '../problem.ts'
import type { SqlValue } from '../repository/database.ts'
import {
  buildQueriesCondition,
  buildSubjectCondition,
  selectCompartment,
} from '../search/access-condition.ts'
import type { QueryContext } from '../search/query-context.ts'
import { all, any, join, name, type Sql, sql } from '../search/sql.ts'
import { type HistoryScope, readVersions, type Version } from './read-versions.ts'

const COUNTED = 10_000

/** A page of versions. */
export interface VersionPage {
  readonly versions: readonly Version[]
  /** Where the next page begins, if there is one. */
  readonly next: readonly SqlValue[] | undefined
}

/**
 * The versions, the newest first: as many as were asked for, or as fit into `PAGE_CHARACTERS`. Never fewer because others
 * are left out, which would tell of them: where it takes too long to look through those, it is a problem.
 */
export function runHistory(
  context: Context,
  ground: HistoryScope,
  query: HistoryQuery,
  after: readonly SqlValue[] | undefined,
): VersionPage | Problem {
  if (ground.parts.length === 0 || query.count === 0) return { versions: [], next: undefined }
  const most = isDecidedByIndex(ground) ? query.count : query.count + VERSIONS_JUDGED
  const before = after ? sql`WHERE seq < ${after[0] ?? 0}` : sql``
  const { text, values } = sql`SELECT seq FROM (${candidates(context, ground, query, name('v.seq AS seq'))})
    ${before} ORDER BY seq DESC LIMIT ${most + 1}`
  const seqs = context.repository.database.rows(text, values).map(([seq]) => Number(seq))
  const versions: Version[] = []
  let [shown, leftOut, last] = [0, 0, 0]
  for (const { version, seq, isSeen } of readVersions(context, ground, seqs.slice(0, most))) {
    const size = version.content.length
    if (isSeen) shown += size
    else leftOut += size
    if (leftOut > limits.PAGE_CHARACTERS) return TOO_MANY_LEFT_OUT
    const isFull = versions.length === query.count || (shown > limits.PAGE_CHARACTERS && versions.length > 0)
    if (isSeen && isFull) return { versions, next: [last] }
    if (isSeen) versions.push(version)
    last = seq
  }
  if (seqs.length <= most) return { versions, next: undefined }
  return versions.length < query.count ? TOO_MANY_LEFT_OUT : { versions, next: [last] }
}

const TOO_MANY_LEFT_OUT = fail({
  problem: 'too-costly',
  text: `Cannot check more than ${VERSIONS_JUDGED} versions, or ${limits.PAGE_CHARACTERS} characters of them, for one page: request the history of one resource, or with _since`,
})

/** How many versions there are, as far as it is cheap to know. */
export function countVersions(
  context: Context,
  ground: HistoryScope,
  query: HistoryQuery,
): number | undefined {
  if (ground.parts.length === 0) return 0
  if (!isDecidedByIndex(ground)) return undefined
  const counted = sql`SELECT 1 FROM (${candidates(context, ground, query, name('v.seq'))}) LIMIT ${COUNTED + 1}`
  const { text, values } = sql`SELECT count(*) FROM (${counted})`
  const count = Number(context.repository.database.rows(text, values)[0]?.[0])
  return count > COUNTED ? undefined : count
}

/**
 * Whether the tables tell which versions are within the reach. Search values are kept of current versions that are not
 * deleted: a granular limit has to look into the content of others.
 */
function isDecidedByIndex({ parts }: HistoryScope): boolean {
  return parts.every(
    ({ filter }) => filter === 'everything' || filter.every(({ query }) => query === undefined),
  )
}

/** The versions that are within the reach as far as the tables tell. */
function candidates(
  { repository, baseUrl, versionAccess }: Context,
  ground: HistoryScope,
  query: HistoryQuery,
  columns: Sql,
): Sql {
  const scene = { names: repository.names, baseUrl, filter: () => [] }
  const parts = ground.parts.map(({ type, filter }) => {
    const tid = repository.names.typeId(type)
    const start = startOf(scene, type, filter, ground.rid)
    return sql`SELECT ${columns} FROM version v JOIN resource r ON r.rid = v.rid WHERE ${all([
      start ? sql`${start} AND +v.tid = ${tid}` : sql`v.tid = ${tid}`,
      ...(filter === 'everything'
        ? []
        : reachConditions(scene, type, groupConstraints(filter), versionAccess)),
      ...(query.since === undefined ? [] : [sql`v.updated >= ${query.since}`]),
      ...(query.at === undefined ? [] : [wasCurrent(query.at)]),
    ])}`
  })
  return join(parts, ' UNION ALL ')
}

function startOf(
  scene: QueryContext,
  type: string,
  filter: AccessFilter,
  rid: number | undefined,
): Sql | undefined {
  if (rid !== undefined) return sql`v.rid = ${rid}`
  const members = selectCompartment(scene, type, filter)
  return members && sql`v.rid IN (${members})`
}

/** Of the version itself, and of the current one. The content of the current version stands only in `resource`. */
function reachConditions(
  scene: QueryContext,
  type: string,
  groups: readonly ConstraintGroup[],
  versionAccess: Context['versionAccess'],
): readonly Sql[] {
  const within = (row: 'v' | 'r', hasIndex: Sql) =>
    any(
      groups.map(group =>
        all([
          buildSubjectCondition(scene, type, group.subject, row, 'r'),
          sql`(NOT ${hasIndex} OR ${buildQueriesCondition(scene, type, group, 'r')})`,
        ]),
      ),
    )
  const own = within('v', name('(v.content IS NULL AND r.deleted = 0)'))
  const current = sql`(v.content IS NULL OR ${within('r', name('(r.deleted = 0)'))})`
  return versionAccess === 'current' ? [own, current] : [own]
}

function wasCurrent({ low, high }: { readonly low: number; readonly high: number }): Sql {
  return sql`v.updated <= ${high} AND NOT EXISTS (SELECT 1 FROM version n
    WHERE n.rid = v.rid AND n.version = v.version + 1 AND n.updated <= ${low})`
}
