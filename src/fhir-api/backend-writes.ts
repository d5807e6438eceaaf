import type { AuditRecord } from '../audit/index.ts'
import type { ExactResource, Interaction, Params, Resource } from '../fhir/index.ts'
import type { Failure } from './failure.ts'
import type { FhirRequest } from './request.ts'
import type { ResponseVersion } from './response.ts'
import type { StoredVersion } from './stored-version.ts'

/** How a backend makes changes. It decides nothing about who may make them. */
export interface BackendWrites {
  /** Finds the resource that a conditional interaction is about, among those that the caller may search. */
  findMatch(
    request: FhirRequest,
    type: string,
    params: Params,
  ): ConditionMatch | Failure | Promise<ConditionMatch | Failure>
  /** Makes all changes or none. */
  commit(writes: readonly VersionedWrite[], options?: CommitOptions): CommitResult | Promise<CommitResult>
  /** New content as a read will return it, where that is not as it was sent. */
  toPublic?(content: Resource): Resource
  /** Whether an operation may change data: then it could not be undone with the rest of a transaction. */
  mayChange?(operation: Extract<Interaction, { readonly kind: 'operation' }>): boolean
  /** Only of a backend that stores the data in this process. */
  readonly local?: LocalWrites
}

export interface LocalWrites {
  newId(): string
  /**
   * Runs work that reads what a write depends on and commits it, one at a time: nobody writes between the first read
   * and the commit. The work must not wait for anything but this backend.
   */
  plan<T>(work: () => Promise<T>): Promise<T>
  /** Stores the audit records of a change whose parts are committed separately, before the first of them. */
  announce?(records: readonly AuditRecord[]): Promise<Announcement>
}

export interface Announcement {
  /** Replaces the announced records. Never rejects, because the change is made: records are written later if need be. */
  complete(records: readonly AuditRecord[]): Promise<void>
}

/** The one match of a condition. */
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
      /** The create is that of a conditional update: a match of `ifNoneExist` is a conflict, for it has to be updated. */
      readonly mustBeNew?: true
    }
  | {
      readonly kind: 'update'
      readonly type: string
      readonly id: string
      readonly resource: ExactResource
      /** Undefined, or deleted: the update creates the resource. */
      readonly before: StoredVersion | undefined
    }
  | { readonly kind: 'delete'; readonly type: string; readonly id: string; readonly before: StoredVersion }

export interface CommitOptions {
  /** The changes are those of a transaction, even where it is only one. */
  readonly isTransaction?: true
  /** The audit records of the changes, written in the same transaction. Only for backends that store both. */
  readonly records?: ((committed: readonly Committed[]) => readonly AuditRecord[]) | undefined
}

export type CommitResult =
  | Commit
  /** Something that the changes were planned from has changed. They are planned again, or fail with this. */
  | { readonly kind: 'conflict'; readonly failure: Failure }
  /** `write` is the index of the change that failed, where one did. */
  | { readonly kind: 'failed'; readonly failure: Failure; readonly write?: number }

export interface Commit {
  readonly kind: 'committed'
  /** One for each write, in the same order. */
  readonly committed: readonly Committed[]
  /** Resolves when the changes are durable; rejects when they were lost. Nothing is acknowledged before. */
  readonly durable?: Promise<void> | undefined
}

/** The result of one change. */
export interface Committed {
  readonly status: 200 | 201 | 204
  readonly version?: ResponseVersion | undefined
  readonly location?: string | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** The new version, where the backend returns it. */
  readonly stored?: StoredVersion | undefined
}
