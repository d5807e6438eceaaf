import type { HistoryQuery, Params } from '../../fhir/index.ts'
import type {
  Awaitable,
  BackendSession,
  CollectLimit,
  CommitOptions,
  CommitResult,
  ConditionMatch,
  Cursor,
  EverythingTarget,
  ExportSource,
  Failure,
  FhirRequest,
  History,
  HistoryPage,
  LocalWrites,
  Operation,
  Search,
  SearchEntry,
  SearchPage,
  StoredVersion,
  VersionedWrite,
} from '../../fhir-api/index.ts'
import type { AccessFilter, PanelMembership } from '../../smart/index.ts'
import { commit } from './commit.ts'
import { SqliteRows } from './export-rows.ts'
import { findWithin } from './find-within.ts'
import { findHistory } from './history/find-history.ts'
import type { HistoryContext } from './history/versions.ts'
import type { SqlValue } from './repository/database.ts'
import type { Outbox } from './repository/outbox.ts'
import { countStatements, finishInTurns, type Steps, takeSnapshots } from './search/planner/search-scope.ts'
import {
  collectMatches,
  findConditionMatch,
  findDocuments,
  findEverything,
  findPage,
} from './search/search.ts'
import { OutsideVersion, SqliteVersion } from './stored-version.ts'

/** The parts that all sessions on one file share. */
export interface SqliteContext extends HistoryContext {
  readonly outbox: Outbox | undefined
  readonly local: LocalWrites
  readonly clock: () => number
}

/** The resources of one file on behalf of one request. */
export class SqliteSession implements BackendSession {
  readonly #context: SqliteContext
  readonly #request: FhirRequest
  #failuresBefore: number

  constructor(context: SqliteContext, request: FhirRequest) {
    this.#context = context
    this.#request = request
    this.#failuresBefore = context.repository.database.countFailures()
  }

  get local(): LocalWrites {
    return this.#context.local
  }

  get rows(): ExportSource {
    const { repository, clock } = this.#context
    return new SqliteRows(repository, clock, this.#request.work)
  }

  read(
    type: string,
    id: string,
    version?: string,
    filter: AccessFilter = 'everything',
  ): StoredVersion | undefined {
    const { repository } = this.#context
    const found = findWithin(repository, type, id, filter, version)
    if (!found) return undefined
    const { content } = found
    return content === null
      ? new OutsideVersion({ ...found, content: '' }, repository.database)
      : new SqliteVersion({ ...found, content }, repository.database)
  }

  search(request: FhirRequest<Search>, cursor?: Cursor): Awaitable<SearchPage | Failure> {
    return this.#finish(findPage(this.#context.repository, request, readCursor(cursor)))
  }

  collect(
    request: FhirRequest<Search>,
    limit: CollectLimit,
  ): Awaitable<readonly SearchEntry[] | 'too-many' | Failure> {
    return this.#finish(collectMatches(this.#context.repository, request, limit))
  }

  history(
    request: FhirRequest<History>,
    query: HistoryQuery,
    cursor?: Cursor,
  ): Awaitable<HistoryPage | Failure> {
    return this.#finish(findHistory(this.#context, request, query, readCursor(cursor)))
  }

  everything(
    request: FhirRequest<Operation>,
    of: EverythingTarget,
    cursor?: Cursor,
  ): Awaitable<SearchPage | Failure> {
    return this.#finish(findEverything(this.#context.repository, request, of, readCursor(cursor)))
  }

  #finish<T>(steps: Steps<T>): Awaitable<T | Failure> {
    const { database } = this.#context.repository
    const counted = countStatements(database, steps, this.#request.work)
    return finishInTurns(takeSnapshots(database, counted), this.#request)
  }

  findDocuments(binaryId: string): readonly SearchEntry[] {
    return findDocuments(this.#context.repository, this.#request, binaryId)
  }

  panelMembers(): PanelMembership {
    return this.#context.membership
  }

  findMatch(request: FhirRequest, type: string, params: Params): ConditionMatch | Failure {
    return findConditionMatch(this.#context.repository, request, type, params)
  }

  commit(writes: readonly VersionedWrite[], options?: CommitOptions): Promise<CommitResult> {
    const { repository, outbox } = this.#context
    return commit(repository, outbox, this.#request.work, writes, options)
  }

  /** A group that fails undoes the writes that this session may have read. */
  flush(): void | Promise<void> {
    const { database } = this.#context.repository
    const isSettled = database.countFailures() === this.#failuresBefore && !database.pending()
    return isSettled ? undefined : this.#waitForGroup()
  }

  async #waitForGroup(): Promise<void> {
    const { database } = this.#context.repository
    try {
      await database.flush(this.#failuresBefore)
    } finally {
      // A failure is reported once, so that the rest of a batch can go on.
      this.#failuresBefore = database.countFailures()
    }
  }
}

/** A cursor comes from a sealed link, so that its values are those of this backend. */
function readCursor(cursor: Cursor | undefined): readonly SqlValue[] | undefined {
  return Array.isArray(cursor) ? cursor : undefined
}
