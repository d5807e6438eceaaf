import type { HistoryQuery } from '../../../fhir/index.ts'
import {
  type AccessFilter,
  type ConstraintGroup,
  groupConstraints,
  type PanelMembership,
  satisfies,
  type VersionAccess,
} from '../../../smart/index.ts'
import type { SqlValue } from '../repository/database.ts'
import type { Names } from '../repository/names.ts'
import { parseContent, type Repository } from '../repository/repository.ts'
import {
  buildQueriesCondition,
  buildSubjectCondition,
  selectCompartment,
} from '../search/access-condition.ts'
import { all, any, join, name, type Sql, sql } from '../search/sql.ts'

export interface HistoryContext {
  readonly repository: Repository
  readonly membership: PanelMembership
  readonly versionAccess: VersionAccess
}

/** The versions of a history: those of one resource (`rid`) or of types, each with an access filter. */
export interface HistoryScope {
  readonly parts: readonly { readonly type: string; readonly filter: AccessFilter }[]
  readonly rid?: number | undefined
}

const COUNTED = 10_000

/** The sequence numbers of the versions that may be in the access, the newest first. */
export function findVersions(
  context: HistoryContext,
  scope: HistoryScope,
  query: HistoryQuery,
  after: readonly SqlValue[] | undefined,
  limit: number,
): readonly number[] {
  const before = after ? sql`WHERE seq < ${after[0] ?? 0}` : sql``
  const { text, values } =
    sql`SELECT seq FROM (${selectVersions(context, scope, query, name('v.seq AS seq'))})
    ${before} ORDER BY seq DESC LIMIT ${limit}`
  return context.repository.database.rows(text, values).map(([seq]) => Number(seq))
}

/** The number of versions, if it is cheap to count. */
export function countVersions(
  context: HistoryContext,
  scope: HistoryScope,
  query: HistoryQuery,
): number | undefined {
  if (scope.parts.length === 0) return 0
  if (!isDecidedByIndex(scope)) return undefined
  const counted = sql`SELECT 1 FROM (${selectVersions(context, scope, query, name('v.seq'))}) LIMIT ${COUNTED + 1}`
  const { text, values } = sql`SELECT count(*) FROM (${counted})`
  const count = Number(context.repository.database.rows(text, values)[0]?.[0])
  return count > COUNTED ? undefined : count
}

/**
 * Whether the index decides which versions are within the access. Search values exist only for current versions: a
 * granular scope has to be checked on the content of old and deleted ones.
 */
export function isDecidedByIndex({ parts }: HistoryScope): boolean {
  return !parts.some(({ filter }) => hasQuery(filter))
}

function hasQuery(filter: AccessFilter): boolean {
  return filter !== 'everything' && filter.some(({ query }) => query !== undefined)
}

/** The versions that are within the access as far as the index decides. */
function selectVersions(
  { repository, versionAccess }: HistoryContext,
  scope: HistoryScope,
  query: HistoryQuery,
  columns: Sql,
): Sql {
  const { names } = repository
  const parts = scope.parts.map(({ type, filter }) => {
    const tid = names.typeId(type)
    const start = selectStart(names, type, filter, scope.rid)
    return sql`SELECT ${columns} FROM version v JOIN resource r ON r.rid = v.rid WHERE ${all([
      start ? sql`${start} AND +v.tid = ${tid}` : sql`v.tid = ${tid}`,
      ...(filter === 'everything'
        ? []
        : buildVersionConditions(repository, type, groupConstraints(filter), versionAccess)),
      ...(query.since === undefined ? [] : [sql`v.updated >= ${query.since}`]),
      ...(query.at === undefined ? [] : [buildTimeCondition(query.at)]),
    ])}`
  })
  return join(parts, ' UNION ALL ')
}

function selectStart(
  names: Names,
  type: string,
  filter: AccessFilter,
  rid: number | undefined,
): Sql | undefined {
  if (rid !== undefined) return sql`v.rid = ${rid}`
  const members = selectCompartment(names, type, filter)
  return members && sql`v.rid IN (${members})`
}

/** The access of the version and, if the setting says so, of the current version, whose content is in `resource`. */
function buildVersionConditions(
  repository: Repository,
  type: string,
  groups: readonly ConstraintGroup[],
  versionAccess: VersionAccess,
): readonly Sql[] {
  const within = (row: 'v' | 'r', hasIndex: Sql) =>
    any(
      groups.map(group =>
        all([
          buildSubjectCondition(repository.names, type, group.subject, row, 'r'),
          sql`(NOT ${hasIndex} OR ${buildQueriesCondition(repository, type, group, 'r')})`,
        ]),
      ),
    )
  const own = within('v', name('(v.content IS NULL AND r.deleted = 0)'))
  const current = sql`(v.content IS NULL OR ${within('r', name('(r.deleted = 0)'))})`
  return versionAccess === 'current' ? [own, current] : [own]
}

/** `_at`: the versions that were current at some time in the range. */
function buildTimeCondition({ low, high }: { readonly low: number; readonly high: number }): Sql {
  return sql`v.updated <= ${high} AND NOT EXISTS (SELECT 1 FROM version n
    WHERE n.rid = v.rid AND n.version = v.version + 1 AND n.updated <= ${low})`
}

export interface Version {
  readonly type: string
  readonly id: string
  readonly version: number
  readonly updated: number
  readonly method: string
  /** The first version, or the first after a deletion. */
  readonly isCreation: boolean
  /** JSON. A deletion has the content of the version before, by which it is checked; it is not shown. */
  readonly content: string
}

interface CheckedVersion {
  readonly version: Version
  readonly seq: number
  readonly isVisible: boolean
}

/** Reads versions in the order of the list, and checks the content of those that the index does not decide. */
export function* readVersions(
  { repository, membership, versionAccess }: HistoryContext,
  { parts }: HistoryScope,
  seqs: readonly number[],
): Generator<CheckedVersion> {
  const { database, names, baseUrl } = repository
  const filters = new Map(parts.map(({ type, filter }) => [type, filter]))
  const { text, values } = sql`SELECT v.seq, v.tid, r.id, v.version, v.updated, v.method,
      v.version = 1 OR (SELECT p.method FROM version p WHERE p.rid = v.rid AND p.version = v.version - 1) = 'DELETE',
      v.content,
      CASE WHEN v.content IS NULL OR r.deleted = 1 THEN r.content END, r.deleted
    FROM json_each(${JSON.stringify(seqs)}) j CROSS JOIN version v ON v.seq = j.value
    CROSS JOIN resource r ON r.rid = v.rid`
  for (const row of database.each(text, values)) {
    const [seq, tid, id, number, updated, method, isCreation, old, current, isDeleted] = row
    const type = names.typeOf(Number(tid))
    const content = String(old ?? current)
    const filter = filters.get(type) ?? []
    const isUndecided = hasQuery(filter) && (old !== null || isDeleted === 1)
    // The index has decided about the current version, unless the resource is deleted.
    const needsCurrent = isDeleted === 1 && versionAccess === 'current'
    const checked = isUndecided ? new Set(needsCurrent ? [content, String(current)] : [content]) : []
    const version: Version = {
      ...{ type, id: String(id), version: Number(number), updated: Number(updated) },
      ...{ method: String(method), isCreation: isCreation === 1, content },
    }
    const isVisible = [...checked].every(it =>
      satisfies(parseContent({ content: it }), filter, baseUrl, membership),
    )
    yield { version, seq: Number(seq), isVisible }
  }
}
