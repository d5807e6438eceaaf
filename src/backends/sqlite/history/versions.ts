import type { HistoryQuery } from '../../../fhir/index.ts'
import {
  type AccessFilter,
  type ConstraintGroup,
  groupConstraints,
  type PanelMembership,
  satisfies,
  type VersionAccess,
} from '../../../smart/index.ts'
import type { Database, SqlValue } from '../repository/database.ts'
import { parseContent, type Repository } from '../repository/repository.ts'
import {
  buildQueriesCondition,
  buildSubjectCondition,
  findCandidates,
} from '../search/planner/access-condition.ts'
import type { Steps } from '../search/planner/search-scope.ts'
import { countUpTo, createProbe, type SearchScope } from '../search/planner/search-scope.ts'
import { all, any, name, type Sql, sql } from '../search/planner/sql.ts'
import { type IndexPath, listSteps } from '../search/planner/walk.ts'

export interface HistoryContext {
  readonly repository: Repository
  readonly membership: PanelMembership
  readonly versionAccess: VersionAccess
}

/** The versions of a history: those of one resource (`rid`) or of types, each with an access filter. */
export interface HistoryScope {
  readonly parts: readonly { readonly type: string; readonly filter: AccessFilter }[]
  readonly rid?: number | undefined
  /**
   * Whether the index decides which versions are within the access. Search values exist only for current versions: a
   * granular scope has to be checked on the content of old and deleted ones.
   */
  readonly isDecidedByIndex: boolean
  /** Whether the caller may see all versions of the resource, or of all types. */
  readonly isWhole: boolean
}

const COUNTED = 10_000

/** The sequence numbers of the versions that may be in the access, the newest first. */
export function* findVersions(
  context: HistoryContext,
  scope: HistoryScope,
  query: HistoryQuery,
  after: readonly SqlValue[] | undefined,
  limit: number,
): Steps<readonly number[]> {
  const { database } = context.repository
  const before = after ? sql`v.seq < ${after[0] ?? 0}` : name('1')
  const seqs: number[] = []
  for (const source of listVersionSources(context, scope, query)) {
    let found = 0
    for (const part of divideSource(database, source, before)) {
      const { text, values } = sql`${source.versions} AND ${part} ORDER BY v.seq DESC LIMIT ${limit}`
      const rows = database.rows(text, values)
      for (const [seq] of rows) seqs.push(Number(seq))
      found += rows.length
      if (found >= limit) break
      if (source.walk) yield STEP
    }
  }
  return seqs.toSorted((a, b) => b - a).slice(0, limit)
}

/** The number of versions, if it is cheap to count. */
export function* countVersions(
  context: HistoryContext,
  scope: HistoryScope,
  query: HistoryQuery,
): Steps<number | undefined> {
  const { database } = context.repository
  const sources = listVersionSources(context, scope, query)
  if (!scope.isDecidedByIndex || sources.some(({ isCheap }) => !isCheap)) return undefined
  let count = 0
  for (const source of sources)
    for (const part of divideSource(database, source, name('1'))) {
      count += countUpTo(database, sql`${source.versions} AND ${part}`, COUNTED + 1)
      if (count > COUNTED) return undefined
      if (source.walk) yield STEP
    }
  return count
}

const STEP = 500

/** The versions before a position, newest first, in one part for each step. */
function divideSource(database: Database, { walk }: Source, before: Sql): Iterable<Sql> {
  if (!walk) return [before]
  return listSteps(
    { database, step: STEP },
    { ...walk, position: ['v.seq'], descending: true, start: before, end: name('1') },
  )
}

/** Whether the filter is that of a granular scope. */
export function hasQuery(filter: AccessFilter): boolean {
  return filter !== 'everything' && filter.some(({ query }) => query !== undefined)
}

interface Source {
  /** The versions of a type that are within the access as far as the index decides, as a subquery. */
  readonly versions: Sql
  /** Whether an index finds them without reading others. */
  readonly isCheap: boolean
  /** The versions that are read in steps, because any number of them may be left out. */
  readonly walk?: Pick<IndexPath, 'index' | 'where'> | undefined
}

/** The versions of each type, or of all types for a caller who may see all. */
function listVersionSources(
  context: HistoryContext,
  { parts, rid, isWhole }: HistoryScope,
  query: HistoryQuery,
): readonly Source[] {
  const isFew = createProbe(context.repository.database)
  const newer = query.since === undefined ? undefined : selectSince(query.since)
  const isRecent = newer !== undefined && isFew(newer)
  const buildConditions = (since: Sql | undefined) =>
    all([
      ...(rid === undefined ? [] : [sql`v.rid = ${rid}`]),
      ...(since ? [since] : []),
      ...(query.at === undefined ? [] : [buildTimeCondition(query.at)]),
    ])
  const after = query.since === undefined ? undefined : sql`v.updated >= ${query.since}`
  const conditions = buildConditions(isRecent ? sql`v.seq IN (${newer})` : after)
  const isBounded = rid !== undefined || isRecent
  const isFiltered = !isBounded && (query.since !== undefined || query.at !== undefined)
  if (isWhole)
    return [
      {
        versions: sql`SELECT v.seq FROM version v WHERE ${conditions}`,
        isCheap: true,
        walk: isFiltered ? { index: name('version v NOT INDEXED'), where: name('1') } : undefined,
      },
    ]
  return parts.map(({ type, filter }) => {
    const tid = context.repository.names.typeId(type)
    const walk = { index: name('version v INDEXED BY version_tid'), where: sql`v.tid = ${tid}` }
    if (filter === 'everything')
      return {
        versions: sql`SELECT v.seq FROM version v WHERE v.tid = ${tid} AND ${conditions}`,
        isCheap: true,
        walk: isFiltered ? walk : undefined,
      }
    const few = rid === undefined ? findFew(context, type, filter, isFew) : undefined
    const start = few && sql`v.rid IN (${few})`
    const isCheap = start !== undefined || rid !== undefined
    // The plus keeps SQLite from starting with all versions of the type.
    const ofType = sql`${name(isCheap ? '+' : '')}v.tid = ${tid}`
    const within = buildVersionConditions(context, type, groupConstraints(filter))
    const versions = sql`SELECT v.seq FROM version v CROSS JOIN resource r ON r.rid = v.rid
      WHERE ${all([...(start ? [start, ofType, buildConditions(after)] : [ofType, conditions]), within])}`
    return { versions, isCheap, walk: isCheap || isBounded ? undefined : walk }
  })
}

/** The few resources of a type of which some version may be within the access. Queries hold for current versions only. */
function findFew(
  { repository }: HistoryContext,
  type: string,
  filter: Exclude<AccessFilter, 'everything'>,
  isFew: SearchScope['isFew'],
): Sql | undefined {
  const subjects = filter.map(({ query: _, ...subject }) => subject)
  const candidates = findCandidates({ ...repository, isFew }, type, subjects)
  return candidates && isFew(candidates) ? candidates : undefined
}

function selectSince(since: number): Sql {
  return sql`SELECT n.seq FROM version n WHERE n.updated >= ${since}`
}

/** The access of the version and, if the setting says so, of the current version, whose content is in `resource`. */
function buildVersionConditions(
  { repository, versionAccess }: HistoryContext,
  type: string,
  groups: readonly ConstraintGroup[],
): Sql {
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
  return versionAccess === 'current' ? sql`${own} AND ${current}` : own
}

/** `_at`: the versions that were current at some time in the range. */
function buildTimeCondition({ low, high }: { readonly low: number; readonly high: number }): Sql {
  return sql`v.updated <= ${high} AND NOT EXISTS (SELECT 1 FROM version n
    WHERE n.rid = v.rid AND n.version = v.version + 1 AND n.updated <= ${low})`
}

export interface Version {
  readonly rid: number
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

export interface CheckedVersion {
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
      CASE WHEN v.content IS NULL OR r.deleted = 1 THEN r.content END, r.deleted, v.rid
    FROM json_each(${JSON.stringify(seqs)}) j CROSS JOIN version v ON v.seq = j.value
    CROSS JOIN resource r ON r.rid = v.rid`
  for (const row of database.each(text, values)) {
    const [seq, tid, id, number, updated, method, isCreation, old, current, isDeleted, rid] = row
    const type = names.typeOf(Number(tid))
    const content = String(old ?? current)
    const filter = filters.get(type) ?? []
    const isUndecided = hasQuery(filter) && (old !== null || isDeleted === 1)
    // The index has decided about the current version, unless the resource is deleted.
    const needsCurrent = isDeleted === 1 && versionAccess === 'current'
    const checked = isUndecided ? new Set(needsCurrent ? [content, String(current)] : [content]) : []
    const version: Version = {
      rid: Number(rid),
      type,
      id: String(id),
      version: Number(number),
      updated: Number(updated),
      method: String(method),
      isCreation: isCreation === 1,
      content,
    }
    const isVisible = [...checked].every(it =>
      satisfies(parseContent({ content: it }), filter, baseUrl, membership),
    )
    yield { version, seq: Number(seq), isVisible }
  }
}
