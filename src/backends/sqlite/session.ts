import type { HistoryQuery } from '../../fhir/index.ts'
import type {
  BackendSession,
  CollectLimit,
  Cursor,
  EverythingTarget,
  Failure,
  FhirRequest,
  History,
  HistoryPage,
  Operation,
  Search,
  SearchEntry,
  SearchPage,
  StoredVersion,
} from '../../fhir-api/index.ts'
import type { PanelMembership } from '../../smart/index.ts'
import type { Context } from './call.ts'
import { findDocuments } from './documents.ts'
import { findHistory } from './history/find-history.ts'
import { collect } from './search/collect.ts'
import { findEverything } from './search/find-everything.ts'
import { findPage } from './search/find-page.ts'
import { parseCursor } from './search/turn-page.ts'
import { SqliteVersion } from './stored-version.ts'

/** The resources of one file on behalf of one request. */
export class SqliteSession implements Omit<BackendSession, 'perform' | 'performRecorded'> {
  readonly #context: Context
  readonly #request: FhirRequest
  #failuresBefore: number

  constructor(context: Context, request: FhirRequest) {
    this.#context = context
    this.#request = request
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

  /** A group that fails undoes what was read from it. */
  flush(): void | Promise<void> {
    const { database } = this.#context.repository
    const before = this.#failuresBefore
    this.#failuresBefore = database.countFailures()
    return database.flush(before)
  }
}
