import { type AccessFilter, groupConstraints } from '../../smart/index.ts'
import { isVersionNumber, type Repository, type Stored, toStored } from './repository/repository.ts'
import { buildQueriesCondition, buildSubjectCondition } from './search/planner/access-condition.ts'
import { any, type Sql, sql } from './search/planner/sql.ts'

type Constraints = Exclude<AccessFilter, 'everything'>

/** A version whose content is null if it is outside an access filter. */
type FoundVersion = Omit<Stored, 'content'> & { readonly content: string | null }

/**
 * The current version of a resource, or the named one. The index decides whether it may be within the filter. If not, its
 * content is not read, so that the time reveals neither its size nor whether it exists.
 */
export function findWithin(
  repository: Repository,
  type: string,
  id: string,
  filter: AccessFilter,
  version?: string,
): FoundVersion | undefined {
  if (filter === 'everything')
    return version === undefined ? repository.find(type, id) : repository.findVersion(type, id, version)
  if (version !== undefined && !isVersionNumber(version)) return undefined
  const { text, values } = getStatement(repository, type, filter, version === undefined ? 'current' : 'named')
  const named = version === undefined ? [id] : [id, Number(version)]
  const [found] = repository.database.rows(text, [...values, ...named])
  return found && toStored<string | null>(type, id, found)
}

type Kind = 'current' | 'named'

const statements = new WeakMap<Constraints, Map<string, Sql>>()

/** The statement of a read, which is built once for each filter and type. Its last values are the id and the version. */
function getStatement(repository: Repository, type: string, filter: Constraints, kind: Kind): Sql {
  const key = `${type} ${kind} ${repository.baseUrl}`
  const known = statements.get(filter) ?? new Map<string, Sql>()
  const statement = known.get(key) ?? buildStatement(repository, type, filter, kind)
  statements.set(filter, known.set(key, statement))
  return statement
}

function buildStatement(repository: Repository, type: string, filter: Constraints, kind: Kind): Sql {
  const tid = repository.names.typeId(type)
  return kind === 'current'
    ? sql`SELECT r.rid, r.version, r.updated, r.deleted,
        CASE WHEN ${buildWithin(repository, type, filter, 'r')} THEN r.content END
        FROM resource r WHERE r.tid = ${tid} AND r.id = ?`
    : sql`SELECT r.rid, v.version, v.updated, v.method = 'DELETE',
        CASE WHEN ${buildWithin(repository, type, filter, 'v')} THEN coalesce(v.content, r.content) END
        FROM resource r JOIN version v ON v.rid = r.rid WHERE r.tid = ${tid} AND r.id = ? AND v.version = ?`
}

/** Search values exist for current versions only. Whatever the index does not decide is checked on the content. */
function buildWithin(repository: Repository, type: string, filter: Constraints, row: 'r' | 'v'): Sql {
  return any(
    groupConstraints(filter).map(group => {
      const { exclusive: _, ...subject } = group.subject
      const isOfSubject = buildSubjectCondition(repository.names, type, subject, row, 'r')
      return row === 'v'
        ? isOfSubject
        : sql`${isOfSubject} AND (r.deleted = 1 OR ${buildQueriesCondition(repository, type, group, 'r')})`
    }),
  )
}
