import type { AuditRecord, FinishedRequest } from '../audit/index.ts'
import type { EverythingType, HistoryQuery, Resource } from '../fhir/index.ts'
import type { Panel, PanelMembership } from '../smart/index.ts'
import type { AccessCache } from './access/access-cache.ts'
import type { BackendWrites } from './backend-writes.ts'
import type { Failure } from './failure.ts'
import type { Cursor, Pages } from './paging/pages.ts'
import type { FhirRequest, History, Operation, Search } from './request.ts'
import type { FhirResponse } from './response.ts'
import type { HistoryPage, SearchEntry, SearchPage } from './search-page.ts'
import type { StoredVersion } from './stored-version.ts'

/** SQLite returns at once, an upstream server later. */
export type Awaitable<T> = T | Promise<T>

/** Stores and finds resources. It decides nothing about who may see or change them. */
export interface FhirBackend {
  /** The backend on behalf of one request, the entries of a Bundle included. */
  forRequest(request: FhirRequest): BackendSession
  /** The CapabilityStatement as JSON. */
  capabilities(): Awaitable<string | Failure>
  readonly pages: Pages
  readonly accessCache: AccessCache
  /** Types that are never taken from this backend. */
  readonly excludedTypes?: ReadonlySet<string>
  /** The stored content of a resource, for the audit trail, where the backend has it at hand. */
  readonly findStored?: FinishedRequest['kept']
}

export interface BackendSession extends BackendWrites {
  /** The current version, or the named one; undefined where there is none. */
  read(type: string, id: string, version?: string): Awaitable<StoredVersion | undefined | Failure>
  /**
   * The content of a resource before it was deleted. Only for backends whose `read` does not return it; asked for also
   * where nothing may be shown, so that an absent resource and a refused one take the same time.
   */
  readLast?(type: string, id: string): Awaitable<Resource | undefined | Failure>
  /** The response of another server as it is, where nothing in it has to be inspected; undefined where it has to be. */
  passThrough?(request: FhirRequest, cursor?: Cursor): Awaitable<FhirResponse | Failure | undefined>
  /** A page of a search, within the access of the request. */
  search(request: FhirRequest<Search>, cursor?: Cursor): Awaitable<SearchPage | Failure>
  /** All matches of a search; `too-many` where there are more than the limit. */
  collect(
    request: FhirRequest<Search>,
    limit: CollectLimit,
  ): Awaitable<readonly SearchEntry[] | 'too-many' | Failure>
  /** A page of a history, within the access of the request. */
  history(
    request: FhirRequest<History>,
    query: HistoryQuery,
    cursor?: Cursor,
  ): Awaitable<HistoryPage | Failure>
  /** A page of `$everything` of a resource that the caller may read. */
  everything(
    request: FhirRequest<Operation>,
    of: EverythingTarget,
    cursor?: Cursor,
  ): Awaitable<SearchPage | Failure>
  /** DocumentReferences within the caller's access that name a Binary; none where they cannot be found. */
  findDocuments(binaryId: string): Awaitable<readonly SearchEntry[]>
  /** Which of these patients are on the panels. */
  panelMembers(panels: readonly Panel[], patients: ReadonlySet<string>): Awaitable<PanelMembership | Failure>
  /** Resolves when everything that this session has read or written is durable. */
  flush?(): Awaitable<void>
  /** Performs an operation that the API does not implement; undefined where the backend does not offer it. */
  operation?(request: FhirRequest<Operation>): Awaitable<FhirResponse | Failure> | undefined
}

export interface CollectLimit {
  readonly matches: number
  readonly characters: number
}

export interface EverythingTarget {
  readonly type: EverythingType
  readonly id: string
  /** The types that `_type` names; all where there are none. */
  readonly types: readonly string[]
}

export interface Audited {
  /** The audit records of an outcome. */
  recordsOf(outcome: FhirResponse): readonly AuditRecord[]
  /** The records of a change that has begun and whose outcome is not known yet. */
  begun(): readonly AuditRecord[]
}
