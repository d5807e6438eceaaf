import { fail, isFailure } from '../../core/index.ts'
import { limits } from '../../fhir/index.ts'
import type {
  CommitOptions,
  CommitResult,
  Committed,
  Failure,
  StoredVersion,
  VersionedWrite,
} from '../../fhir-api/index.ts'
import type { Outbox } from './repository/outbox.ts'
import type { Repository, Stored } from './repository/repository.ts'
import { SqliteVersion } from './stored-version.ts'

/** Commits the writes of the current plan with their audit records, in one transaction of the open group. */
export function commit(
  repository: Repository,
  outbox: Outbox | undefined,
  writes: readonly VersionedWrite[],
  { records, isTransaction }: CommitOptions = {},
): CommitResult {
  const { database } = repository
  const outcome = database.commitPlan(
    () => {
      const result = applyAll(repository, writes, isTransaction)
      const added =
        result.kind === 'committed' && records ? outbox?.add(records(result.committed)) : undefined
      return { result, added }
    },
    ({ result }) => result.kind === 'committed',
  )
  if (outcome === 'conflict') return { kind: 'conflict', failure: CONFLICT }
  const { result, added = [] } = outcome
  if (result.kind !== 'committed') return result
  if (!outbox || added.length === 0) return { ...result, durable: database.pending() }
  const durable = database.pending()?.then(() => outbox.deliver(added))
  // A caller that does not await it learns about a failure from `flush`.
  durable?.catch(() => {})
  return { ...result, durable }
}

const CONFLICT = fail({
  problem: 'stale',
  text: 'Cannot write: other changes were made at the same time. Send the request again',
})

function applyAll(
  repository: Repository,
  writes: readonly VersionedWrite[],
  isTransaction: true | undefined,
): CommitResult {
  const rowsBefore = repository.indexRows()
  const committed: Committed[] = []
  for (const [at, write] of writes.entries()) {
    const result = applyWrite(repository, write)
    if (isFailure(result)) return { kind: 'failed', failure: result, write: at }
    if (isTransaction && repository.indexRows() - rowsBefore > limits.INDEX_ROWS)
      return { kind: 'failed', failure: TOO_MANY_ROWS, write: at }
    committed.push(result)
  }
  return { kind: 'committed', committed }
}

const TOO_MANY_ROWS = fail({
  problem: 'too-costly',
  text: `Cannot process transaction: it writes more than ${limits.INDEX_ROWS} search values`,
})

function applyWrite(repository: Repository, write: VersionedWrite): Committed | Failure {
  switch (write.kind) {
    case 'create': {
      const { resource, id = repository.newId() } = write
      const stored = repository.save(resource, id, undefined)
      return isFailure(stored) ? stored : describeStored(repository, stored, 201)
    }
    case 'update': {
      const { resource, id } = write
      const before = findRow(write.before)
      const stored = repository.save(resource, id, before, 'PUT')
      if (isFailure(stored)) return stored
      return describeStored(repository, stored, before && !before.deleted ? 200 : 201)
    }
    case 'delete': {
      const before = findRow(write.before)
      if (!before) throw new Error('Cannot delete a resource that is not stored')
      repository.remove(before)
      return { status: 204 }
    }
  }
}

function findRow(version: StoredVersion | undefined): Stored | undefined {
  if (version && !(version instanceof SqliteVersion))
    throw new Error('Cannot write: the version was not read from this backend')
  return version?.stored
}

function describeStored({ baseUrl, database }: Repository, stored: Stored, status: 200 | 201): Committed {
  const version = new SqliteVersion(stored, database)
  const location = `${baseUrl}/${stored.type}/${stored.id}/_history/${stored.version}`
  return { status, version, location, stored: version }
}
