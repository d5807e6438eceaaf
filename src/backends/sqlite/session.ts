import type { HistoryQuery, Params } from '../../fhir/index.ts'
import type {
  BackendSession,
  CollectLimit,
  CommitOptions,
  CommitResult,
  ConditionMatch,
  Cursor,
  EverythingTarget,
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
import type { PanelMembership } from '../../smart/index.ts'
import type { Context } from './call.ts'
import { commit } from './commit.ts'
import { findDocuments } from './documents.ts'
import { findHistory } from './history/find-history.ts'
import type { Outbox } from './repository/outbox.ts'
import { collect } from './search/collect.ts'
import { findEverything } from './search/find-everything.ts'
import { findMatch } from './search/find-match.ts'
import { findPage } from './search/find-page.ts'
import { parseCursor } from './search/pages.ts'
import { SqliteVersion } from './stored-version.ts'

/** The resources of one file on behalf of one request. */
export class SqliteSession implements BackendSession {
  readonly #context: Context
  readonly #request: FhirRequest
  readonly #outbox: Outbox | undefined
  readonly local: LocalWrites
  #failuresBefore: number

  constructor(context: Context, request: FhirRequest, outbox: Outbox | undefined, local: LocalWrites) {
    this.#context = context
    this.#request = request
    this.#outbox = outbox
    this.local = local
    this.#failuresBefore = context.repository.database.countFailures()
  }

  read(type: string, id: string, version?: string): StoredVersion | undefined {
    const { repository } = this.#context
    const stored =
      version === undefined ? repository.find(type, id) : repository.findVersion(type, id, version)
    return stored && new SqliteVersion(stored, repository.database)
  }

  search(request: FhirRequest<Search>, cursor?: Cursor): SearchPage | Failure {
    return findPage(this.#context, request, parseCursor(cursor))
  }

  collect(request: FhirRequest<Search>, limit: CollectLimit): readonly SearchEntry[] | 'too-many' | Failure {
    return collect(this.#context, request, limit)
  }

  history(request: FhirRequest<History>, query: HistoryQuery, cursor?: Cursor): HistoryPage | Failure {
    return findHistory(this.#context, request, query, parseCursor(cursor))
  }

  everything(request: FhirRequest<Operation>, of: EverythingTarget, cursor?: Cursor): SearchPage | Failure {
    return findEverything(this.#context, request, of, parseCursor(cursor))
  }

  findDocuments(binaryId: string): readonly SearchEntry[] {
    return findDocuments(this.#context, this.#request, binaryId)
  }

  panelMembers(): PanelMembership {
    return this.#context.membership
  }

  findMatch(request: FhirRequest, type: string, params: Params): ConditionMatch | Failure {
    return findMatch(this.#context, request, type, params)
  }

  commit(writes: readonly VersionedWrite[], options?: CommitOptions): CommitResult {
    return commit(this.#context.repository, this.#outbox, writes, options)
  }

  /** A group that fails undoes what was read from it. */
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
