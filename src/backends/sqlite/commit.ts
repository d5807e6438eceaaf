import { fail, isFailure } from '../../core/index.ts'
import { failFor, limits, type Work } from '../../fhir/index.ts'
import type {
  CommitOptions,
  CommitResult,
  Committed,
  Failure,
  StoredVersion,
  VersionedWrite,
} from '../../fhir-api/index.ts'
import type { Outbox } from './repository/outbox.ts'
import type { PreparedWrite, Repository, Stored } from './repository/repository.ts'
import { COLLECTIONS, SqliteVersion } from './stored-version.ts'

/**
 * Commits the writes of the current plan with their audit records, in one transaction of the open group. The transaction only
 * writes rows, because nothing may interrupt it: all else is prepared before it, with pauses.
 */
export async function commit(
  repository: Repository,
  outbox: Outbox | undefined,
  work: Work,
  writes: readonly VersionedWrite[],
  { records, isTransaction }: CommitOptions = {},
): Promise<CommitResult> {
  const { database } = repository
  const prepared = await prepareAll(repository, work, writes, isTransaction)
  if (isFailure(prepared)) return { kind: 'failed', failure: prepared.failure, write: prepared.write }
  const recorded = outbox && records ? await records(prepared.map(it => describe(repository, it))) : []
  if (!(await database.resumePlan())) return { kind: 'conflict', failure: CONFLICT }
  const outcome = database.commitPlan(() => ({
    committed: prepared.map(it => apply(repository, it)),
    added: outbox?.add(recorded) ?? [],
  }))
  if (outcome === 'conflict') return { kind: 'conflict', failure: CONFLICT }
  const { committed, added } = outcome
  if (!outbox || added.length === 0) return { kind: 'committed', committed, durable: database.pending() }
  const durable = database.pending()?.then(() => outbox.deliver(added))
  // A caller that does not await it learns about a failure from `flush`.
  durable?.catch(() => {})
  return { kind: 'committed', committed, durable }
}

const CONFLICT = failFor('changed-while-written')

/** A change that only has to be written. */
type Prepared =
  | { readonly kind: 'store'; readonly write: PreparedWrite; readonly resource: VersionedWrite }
  | { readonly kind: 'remove'; readonly before: Stored }

/** Prepares all changes, and counts the rows that they will write. */
async function prepareAll(
  repository: Repository,
  work: Work,
  writes: readonly VersionedWrite[],
  isTransaction: true | undefined,
) {
  const prepared: Prepared[] = []
  let rows = 0
  for (const [write, versioned] of writes.entries()) {
    const change = prepare(repository, versioned)
    if (isFailure(change)) return fail({ failure: change, write })
    prepared.push(change)
    if (!isTransaction) continue
    const counted = change.kind === 'store' ? change.write : { before: change.before }
    const added = repository.countRows(counted, limits.INDEX_ROWS)
    rows += added
    const failure: Failure | undefined =
      rows > limits.INDEX_ROWS ? TOO_MANY_ROWS : work.count('written', added)
    if (failure) return fail({ failure, write })
    await work.pause()
  }
  return prepared
}

const TOO_MANY_ROWS = failFor('transaction-rows-too-many', { most: limits.INDEX_ROWS })

function prepare(repository: Repository, write: VersionedWrite): Prepared | Failure {
  if (write.kind === 'delete') {
    const before = findRow(write.before)
    if (!before) throw new Error('Cannot delete a resource that is not stored')
    return { kind: 'remove', before }
  }
  const { resource, id = repository.newId() } = write
  const prepared =
    write.kind === 'create'
      ? repository.prepare(resource, id, undefined)
      : repository.prepare(resource, id, findRow(write.before), 'PUT')
  return isFailure(prepared) ? prepared : { kind: 'store', write: prepared, resource: write }
}

function apply(repository: Repository, prepared: Prepared): Committed {
  if (prepared.kind === 'remove') {
    repository.remove(prepared.before)
    return { status: 204 }
  }
  const version = new SqliteVersion(repository.store(prepared.write), repository.database)
  return { ...describe(repository, prepared), version, stored: version }
}

function findRow(version: StoredVersion | undefined): Stored | undefined {
  if (version && !(version instanceof SqliteVersion))
    throw new Error('Cannot write: the version was not read from this backend')
  return version?.stored
}

/** A change as it will be when it is committed, for the audit trail. */
function describe({ baseUrl }: Repository, prepared: Prepared): Committed {
  if (prepared.kind === 'remove') return { status: 204 }
  const { type, id, version, before, index } = prepared.write
  return {
    status: before && !before.deleted ? 200 : 201,
    location: `${baseUrl}/${type}/${id}/_history/${version}`,
    patients: COLLECTIONS.has(type) ? undefined : [...index.patients, ...index.contained],
  }
}
