import type { Params } from '../fhir/index.ts'
import type { Sealer, Store } from '../store/index.ts'
import type { ExportMoment, ExportRange } from './backend.ts'

export type ExportLevel = 'system' | 'patient' | 'group'

/** What an export selects. It is decided at the start and does not change. */
export interface ExportOrder {
  readonly level: ExportLevel
  /** The URL of the request, for the manifest. */
  readonly url: string
  readonly moment: ExportMoment
  readonly types: readonly string[]
  /** Milliseconds: resources that were written at this time or later. */
  readonly since?: number
  /** Milliseconds: resources that were written before. */
  readonly until?: number
  /** Any of the queries of a type must match. */
  readonly filters: readonly TypeFilter[]
  /** `name`, or `Patient.name`. */
  readonly elements: readonly string[]
  /** The only patients whose data are exported; all if undefined. */
  readonly patients?: readonly string[]
  /** Whether a resource that is also about other patients is left out. */
  readonly isOnlyPatients?: true
  /** Whether the only Provenance are those of exported resources, because `_type` does not name the type. */
  readonly isProvenanceAdded?: true
  /** What the client asked for and does not get. */
  readonly notes: readonly string[]
}

export interface TypeFilter {
  readonly type: string
  readonly params: Params
}

/** A file: the current resources of a type in a range, or those that were deleted. */
export interface ExportFile extends ExportRange {
  readonly kind: 'output' | 'deleted'
  readonly type: string
}

/** The files as far as they are known, and where the search for them goes on. */
export interface ExportPlan {
  readonly files: readonly ExportFile[]
  /** The index of the next part (a type, or its deletions); undefined if all files are known. */
  readonly next?: { readonly part: number; readonly after: number }
}

/** A bulk export. Any process serves it from this. */
export interface ExportJob {
  readonly id: string
  readonly owner: ExportOwner
  readonly order: ExportOrder
  readonly plan: ExportPlan
  readonly revision: number
  readonly nextPollAt: number
  readonly expiresAt: number
}

/** The client whose tokens may use an export. */
export interface ExportOwner {
  /** Of the tokens, if it is not our auth server. */
  readonly issuer: string
  readonly client: string
}

export interface ExportJobs {
  add(order: ExportOrder, owner: ExportOwner, expiresAt: number): Promise<string>
  /** Undefined if it has ended or expired, or is another client's. */
  find(id: string, owner: ExportOwner, now: number): Promise<ExportJob | undefined>
  /** Whether it goes on. */
  isOpen(id: string, now: number): Promise<boolean>
  /** The exports of a client. */
  count(owner: ExportOwner, now: number): Promise<number>
  /** Changes the plan, and the time of the next request for the status. False if another process has done it meanwhile. */
  update(job: ExportJob, plan: ExportPlan, nextPollAt: number): Promise<boolean>
  end(id: string): Promise<void>
}

export interface ExportOptions {
  readonly store: Store
  /** All instances have the same secret: each serves the files of all. */
  readonly sealer: Sealer
  /** `smart.fhir.export-hours`, in milliseconds. */
  readonly lifetimeMs: number
  /** The most lines of a file. */
  readonly fileResources: number
}

export interface Exports extends Pick<ExportOptions, 'sealer' | 'lifetimeMs' | 'fileResources'> {
  readonly jobs: ExportJobs
  readonly downloads: Downloads
}

/** The files that this process sends at present. */
export interface Downloads {
  /** Returns the function that ends a download; undefined if the client has too many. */
  take(owner: ExportOwner): (() => void) | undefined
}
