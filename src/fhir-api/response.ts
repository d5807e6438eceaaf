import type { Readable } from 'node:stream'
import type { SentContent } from '../audit/index.ts'
import { type Failed, fail } from '../core/index.ts'
import {
  type Because,
  type FhirProblem,
  failFor,
  type NativeContent,
  type OperationOutcome,
  type Refused,
  type UPSTREAM,
} from '../fhir/index.ts'
import type { Searchset } from './searchset.ts'

/** The version that a response describes. */
export interface ResponseVersion {
  readonly etag: string | undefined
  /** Milliseconds since 1970. */
  readonly lastModified: number | undefined
}

/** The response to an interaction: to a request of its own or to an entry of a Bundle. */
export interface FhirResponse {
  readonly status: number
  /** Becomes `ETag` and `Last-Modified`. */
  readonly version?: ResponseVersion | undefined
  readonly location?: string | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** JSON of a resource; a stream if nothing in it has to be checked. */
  readonly body?: string | Readable | undefined
  /** The page of a search in place of `body`, if the way in takes it (`FhirRequest.takesSearchset`). */
  readonly searchset?: Searchset | undefined
  /** Whether `body` is from another server and was not parsed, so that it may not be JSON. */
  readonly isUnparsed?: true
  /** The content of the Binary in `body`, which is sent instead of the resource. */
  readonly content?: NativeContent | undefined
  /** Why the request was refused, if no scope permits it. */
  readonly refused?: Refused | undefined
  /** For the audit trail: the resources in `body`, so that it is not parsed again. */
  readonly contents?: readonly SentContent[] | undefined
  /** For the audit trail: what a stream has sent. */
  readonly streamed?: StreamRecord | undefined
  /** For the audit trail: the resource after a change, and before it. */
  readonly after?: SentContent | undefined
  readonly before?: SentContent | undefined
  /** For the audit trail: the documents that name the Binary in `body`. */
  readonly documents?: readonly SentContent[] | undefined
  /** For the audit trail: the resource that was deleted (`Condition/1`). */
  readonly deleted?: string | undefined
  /** For the audit trail: the responses to the entries of a Bundle. */
  readonly entries?: readonly FhirResponse[] | undefined
  /** Whether the audit records of the change are stored with it. */
  readonly isRecorded?: boolean | undefined
  /** Resolves when the change is durable; rejects when it was lost. The response is sent only then. */
  readonly durable?: Promise<void> | undefined
}

/** What a stream has sent until now. */
export interface StreamRecord {
  /** The number of patients that were not taken yet. */
  readonly waiting: number
  takePatients(): readonly string[]
  describe(): string
}

const JSON_TYPE = 'application/fhir+json; charset=utf-8'

/** The HTTP headers of a response. */
export function getHeaders(response: FhirResponse): Readonly<Record<string, string>> {
  const { version, location, headers, body } = response
  const all: Record<string, string> = {}
  if (body !== undefined) all['content-type'] = JSON_TYPE
  if (version?.etag !== undefined) all.etag = version.etag
  if (version?.lastModified !== undefined) all['last-modified'] = new Date(version.lastModified).toUTCString()
  if (location !== undefined) all.location = location
  return headers ? Object.assign(all, headers) : all
}

/** Why an interaction fails: for a reason of any FHIR server, or because of the upstream. */
export type Failure =
  | FhirProblem
  | Because<Exclude<keyof typeof UPSTREAM, Broken['reason'] | Declined['reason'] | Lost['reason']>>
  | Broken
  | Declined
  | Lost
  | EntryFailed

/** The response of the upstream is invalid. */
interface Broken extends Because<'upstream-broken' | 'upstream-broken-in-change'> {
  /** For the log only. */
  readonly why: string
  /** The limit that the response exceeds. */
  readonly excess?: string | undefined
}

/** The upstream refuses. */
interface Declined extends Because<'upstream-declined'> {
  readonly status: number
  /** Its OperationOutcome, as far as the caller may see it. */
  readonly outcome: OperationOutcome
  readonly headers: Readonly<Record<string, string>>
}

/** A change of the upstream that affects versions which were not checked, because another client has made a change at the same time. */
interface Lost extends Because<'overwritten' | 'deleted-newer'> {
  /** All versions concerned, as far as they are known, for the audit trail. */
  readonly affected: readonly SentContent[]
}

interface EntryFailed extends Failed {
  readonly reason: 'entry-failed'
  readonly entry: number
  readonly cause: Failure
  /** The outcomes of all entries, if the backend has carried out others all the same. */
  readonly entries?: readonly FhirResponse[] | undefined
  /** The client has sent one write (`FhirRequest.isComposed`). */
  readonly isComposed?: true
}

/** The failure of a transaction because of one entry. */
export function failEntry(entry: number, cause: Failure, entries?: readonly FhirResponse[]): Failure {
  return fail({ reason: 'entry-failed', entry, cause, entries })
}

export function failRefused(refused: Refused): Failure {
  return fail({ reason: 'refused', refused })
}

export function failBroken(why: string, excess?: string): Broken {
  return fail({ ...failFor('upstream-broken'), why, excess })
}

/** Whether a failure is due to content outside the access. */
export function isOutside({ reason }: Failure): boolean {
  return reason === 'outside-access' || reason === 'hidden-target'
}
