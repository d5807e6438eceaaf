import type { Params } from '../fhir/index.ts'
import type { Sealer, Store } from '../store/index.ts'
import type { ExportMoment, ExportRange } from './backend.ts'
import type { CallerConnection } from './request.ts'

export type ExportLevel = 'system' | 'patient' | 'group'

/** What an export selects. It is decided at the start and does not change. */
export interface ExportOrder {
  readonly level: ExportLevel
  /** The status URL of the upstream's own export, below its base. Then the upstream decides what the files have. */
  readonly relayed?: string
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
  /** Which Provenance are exported (`includeAssociatedData`): those of exported resources, or only the latest of each. */
  readonly provenance?: 'relevant' | 'latest'
  /** Whether the only Provenance are those of exported resources, because `_type` does not name the type. */
  readonly isProvenanceAdded?: true
  /** Whether the lines of a file are organized by the patients that they are about (`organizeOutputBy`). */
  readonly isByPatient?: true
  /** Whether the client takes files before all are known (`allowPartialManifests`). */
  readonly isPartial?: true
  /** Whether the deletions since another export are exported. */
  readonly hasDeletions?: true
  /** What the client asked for and does not get. */
  readonly notes: readonly string[]
}

export interface TypeFilter {
  readonly type: string
  readonly params: Params
}

/**
 * A file: the current resources of a type in a range, or those that were deleted. In an export that is organized by patient,
 * the type is Patient, and the file has the resources of each patient of the range.
 */
export interface ExportFile extends ExportRange {
  readonly kind: 'output' | 'deleted'
  readonly type: string
  /** Whether its rows were counted for a caller who may not see all of them. */
  readonly isLimited?: true
  /** Which resources of a patient who has more than a file may have. */
  readonly section?: ExportSection
}

/** From a position within a type up to one within the same or a later type; the types by their index in the plan. */
export interface ExportSection {
  readonly first: number
  readonly after: number
  readonly last: number
  /** Undefined: up to the end of the last type. */
  readonly to?: number
  /** Whether the next file goes on with the same patient. */
  readonly continues?: true
}

/** The files as far as they are known, and where the search for them goes on. */
export interface ExportPlan {
  readonly files: readonly ExportFile[]
  /** The index of the next part (a type, or its deletions); undefined if all files are known. */
  readonly next?: { readonly part: number; readonly after: number }
  /** The types that a file organized by patient has: those that are not empty. */
  readonly types?: readonly string[]
  /** The number of files of the upstream's own export. */
  readonly relayed?: number
  /** The number of files up to the end of each manifest that the client was shown, if it takes partial ones. */
  readonly manifests?: readonly number[]
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
  /** Waits for the client's turn, and returns the function that ends the download; undefined if too many were before it, or if the client leaves. */
  take(owner: ExportOwner, connection: CallerConnection): Promise<(() => void) | undefined>
}
