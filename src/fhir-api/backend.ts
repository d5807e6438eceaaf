import type { Readable } from 'node:stream'
import type { AuditRecord } from '../audit/index.ts'
import type {
  EverythingType,
  ExactResource,
  HistoryQuery,
  Interaction,
  Params,
  Resource,
} from '../fhir/index.ts'
import type { AccessFilter, Panel, PanelMembership } from '../smart/index.ts'
import type { AccessCache } from './access-cache.ts'
import type { Cursor, Pages } from './paging.ts'
import type { FhirRequest, History, Operation, Search } from './request.ts'
import type { Failure, FhirResponse, ResponseVersion } from './response.ts'
import type { SearchEntry } from './searchset.ts'
import type { HistoryPage, SearchPage, StoredVersion } from './stored-version.ts'

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
  /** Whether it stores the content of a Binary while it arrives (`FhirRequest.content`). */
  readonly takesContent?: true
  /** Types that this backend never serves. */
  readonly excludedTypes?: ReadonlySet<string>
}

export interface BackendSession extends BackendWrites {
  /**
   * The current version, or the named one; undefined where there is none. A backend that can decide without the content
   * returns no `text` outside the filter. Otherwise the FHIR API checks the content. With a filter an absent resource need
   * not be told from one outside it.
   */
  read(
    type: string,
    id: string,
    version?: string,
    filter?: AccessFilter,
  ): Awaitable<StoredVersion | undefined | Failure>
  /**
   * The content of a resource before it was deleted. Only for backends whose `read` does not return it: another read takes
   * its place where nothing was deleted, so that absent and refused resources take the same steps.
   */
  readLast?(type: string, id: string, filter?: AccessFilter): Awaitable<Resource | undefined | Failure>
  /** Called where a limited caller is shown nothing of a resource that it has named. */
  noteUnseen?(type: string): void
  /** Resolves when the response may be sent, so that its time does not tell a refused resource from an absent one. */
  settle?(): Awaitable<unknown>
  /** The unchanged response of another server, if nothing in it has to be checked; otherwise undefined. */
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
  /** The DocumentReferences within the caller's access that name a Binary; none if they cannot be found. */
  findDocuments(binaryId: string): Awaitable<readonly SearchEntry[]>
  /** Which of these patients are on the panels. */
  panelMembers(panels: readonly Panel[], patients: ReadonlySet<string>): Awaitable<PanelMembership | Failure>
  /** Resolves when everything that this session has read or written is durable. */
  flush?(): Awaitable<void>
  /** The rows of bulk exports. */
  readonly rows: ExportSource
  /** Only if the site relays bulk exports to an upstream. */
  readonly relay?: ExportRelay | undefined
  /** Performs an operation that the API does not implement; undefined where the backend does not offer it. */
  operation?(request: FhirRequest<Operation>): Awaitable<FhirResponse | Failure> | undefined
}

/** The upstream's own bulk export. A place is one of its URLs, below its base. */
export interface ExportRelay {
  /** Returns the place of the status. */
  start(request: FhirRequest<Operation>): Promise<string | Failure>
  askStatus(place: string): Promise<RelayedStatus | Failure>
  end(place: string): Promise<Failure | undefined>
  /** NDJSON. */
  openFile(place: string): Promise<Readable | Failure>
  /** The place of a URL of a manifest; undefined if it is not below the base. */
  findPlace(url: string): string | undefined
}

export interface RelayedStatus {
  readonly isReady: boolean
  /** Those that say when to ask again, and when the files expire. */
  readonly headers: Readonly<Record<string, string>>
  readonly manifest?: Readonly<Record<string, unknown>> | undefined
}

/** The rows of bulk exports, as they were at a moment. It checks no access: the export does, row by row. */
export interface ExportSource {
  /** The present moment, when everything that was written until then is durable. */
  now(): Promise<ExportMoment>
  /**
   * The next range of a type, with at most `limit` rows, or undefined after the last one. A call does a limited amount of
   * work: a range may have fewer rows than it could have.
   */
  divide(rows: ExportSelection, after: number, limit: number): Promise<ExportRange | undefined | Failure>
  /** The number of rows, or more if a row is found in several ways. */
  count(rows: ExportSelection): Awaitable<number | Failure>
  /** The rows of a range, a few at a time. A failure ends them: rows are missing then. */
  read(rows: ExportSelection, range: Partial<ExportRange>): AsyncIterable<readonly ExportRow[] | Failure>
  /** Whether the deletions of a type since a time can be exported. */
  knowsDeletions(type: string, since: number): Awaitable<boolean>
  /** Whether the rows of a range are the same at any time, so that their number is certain. */
  readonly isStable: boolean
  /** Whether it divides and counts only what the caller may see. */
  readonly isWithinAccess: boolean
}

/** `mark` is the backend's own. */
export interface ExportMoment {
  /** Milliseconds since 1970. */
  readonly time: number
  readonly mark: number
}

/** Positions of the backend's own: after `from`, up to `to`. */
export interface ExportRange {
  readonly from: number
  readonly to: number
  /** The rows of the range; undefined if they are not counted. */
  readonly rows?: number | undefined
}

export interface ExportSelection {
  readonly type: string
  readonly moment: ExportMoment
  /** The last content of resources that were deleted. */
  readonly isDeleted: boolean
  /** Milliseconds: resources that were written at this time or later. */
  readonly since?: number | undefined
  /** Milliseconds: resources that were written before. */
  readonly until?: number | undefined
  /** Only the compartments of these patients. A backend may return more. */
  readonly patients?: readonly string[] | undefined
  /** As `patients`, of few patients: found by them, and no more than that. */
  readonly of?: readonly string[] | undefined
  /** Search parameters; all of one list must match. A backend may return more. */
  readonly filters: readonly Params[]
}

export interface ExportRow {
  readonly type: string
  readonly id: string
  /** JSON as stored, without line breaks. */
  readonly text: string
  parse(): Resource
  /** See `StoredVersion`. */
  findPatients?(): readonly string[] | undefined
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
  createRecords(outcome: FhirResponse): Promise<readonly AuditRecord[]>
  /** The records of a change that has begun and whose outcome is not known yet. */
  describeBegun(): Promise<readonly AuditRecord[]>
}

/** Changes resources. It decides nothing about who may change them. */
export interface BackendWrites {
  /** Finds the resource that a conditional interaction is about, among those that the caller may search. */
  findMatch(
    request: FhirRequest,
    type: string,
    params: Params,
  ): ConditionMatch | Failure | Promise<ConditionMatch | Failure>
  /** Commits all changes or none. */
  commit(writes: readonly VersionedWrite[], options?: CommitOptions): CommitResult | Promise<CommitResult>
  /** Runs changes with a common key one after the other. Only for a backend that cannot make every condition part of a commit. */
  serialize?<T>(keys: readonly string[], work: () => Promise<T>): Promise<T>
  /** New content as a later read returns it, if that differs from the content sent. */
  toPublic?(content: Resource): Resource
  /** Whether an operation may change data, so that a transaction could not undo it. */
  mayChange?(operation: Extract<Interaction, { readonly kind: 'operation' }>): boolean
  /** Only for a backend that stores the data in this process. */
  readonly local?: LocalWrites
}

export interface LocalWrites {
  newId(): string
  /**
   * Runs work that reads, checks and commits, one at a time: no other write happens between its first read and its
   * commit. The work must wait for nothing but this backend.
   */
  plan<T>(work: () => Promise<T>): Promise<T>
  /** Stores audit records before the first change of a Bundle whose entries are committed separately. */
  announce?(records: readonly AuditRecord[]): Promise<Announcement>
}

export interface Announcement {
  /** Replaces the announced records. Never rejects, because the change is committed: it retries later if necessary. */
  complete(records: readonly AuditRecord[]): Promise<void>
}

/** The result of a condition: its one match, if any. */
export interface ConditionMatch {
  readonly match: StoredVersion | undefined
  /** The condition to send with a create, so that two creates at the same time do not both find no match. */
  readonly ifNoneExist?: Params | undefined
}

/** A change, bound to the version that it was planned from. */
export type VersionedWrite =
  | {
      readonly kind: 'create'
      readonly type: string
      /** Undefined where the backend chooses the id. */
      readonly id: string | undefined
      readonly resource: ExactResource
      /** The URL by which other writes of the same commit refer to this resource, where its id is not known yet. */
      readonly fullUrl?: string | undefined
      readonly ifNoneExist?: Params | undefined
      /** The create belongs to a conditional update: a match of `ifNoneExist` is a conflict, because it must be updated. */
      readonly mustBeNew?: true
    }
  | {
      readonly kind: 'update'
      readonly type: string
      readonly id: string
      readonly resource: ExactResource
      /** If undefined or deleted, the update creates the resource. */
      readonly before: StoredVersion | undefined
    }
  | { readonly kind: 'delete'; readonly type: string; readonly id: string; readonly before: StoredVersion }

export interface CommitOptions {
  /** The changes belong to a transaction, even if there is only one. */
  readonly isTransaction?: true
  /**
   * The audit records of the changes as they will be committed, written in the same transaction. Only for backends that store
   * both.
   */
  readonly records?: ((committed: readonly Committed[]) => Promise<readonly AuditRecord[]>) | undefined
}

export type CommitResult =
  | Commit
  /**
   * Nothing was changed: a version that the changes were planned from is no longer current. They are planned and sent again,
   * or fail with this.
   */
  | { readonly kind: 'conflict'; readonly failure: Failure }
  /** The condition of the create has a match, which may be the resource itself: it is looked up, and never created again. */
  | { readonly kind: 'matched'; readonly failure: Failure }
  /**
   * `write` is the index of the change that failed, if it is known; `committed` has the result of every change, if others
   * were made all the same.
   */
  | {
      readonly kind: 'failed'
      readonly failure: Failure
      readonly write?: number
      readonly committed?: readonly Committed[]
    }

export interface Commit {
  readonly kind: 'committed'
  /** One for each write, in the same order. */
  readonly committed: readonly Committed[]
  /** Resolves when the changes are durable; rejects when they were lost. Nothing is acknowledged before. */
  readonly durable?: Promise<void> | undefined
}

/** The result of one change. */
export interface Committed {
  /** 409 for a change that was not made, although others of its transaction were. */
  readonly status: 200 | 201 | 204 | 409
  readonly version?: ResponseVersion | undefined
  readonly location?: string | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** The new version, if the backend returns it. */
  readonly stored?: StoredVersion | undefined
  /** The patients of the new version, for the audit trail, if the backend knows them before it is stored. */
  readonly patients?: readonly string[] | undefined
}
