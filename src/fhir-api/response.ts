import type { Readable } from 'node:stream'
import type { SentContent } from '../audit/index.ts'
import { type Failed, fail } from '../core/index.ts'
import type { FhirProblem, NativeContent, OperationOutcome } from '../fhir/index.ts'

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
  /** Whether `body` is from another server and was not parsed, so that it may not be JSON. */
  readonly isUnparsed?: true
  /** The content of the Binary in `body`, which is sent instead of the resource. */
  readonly content?: NativeContent | undefined
  /** For the audit trail: the resources in `body`, so that it is not parsed again. */
  readonly contents?: readonly SentContent[] | undefined
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
export type Failure = FhirProblem | (Failed & UpstreamReason)

type UpstreamReason =
  /** It does not respond, or recently did not. */
  | ({ readonly problem: 'upstream-unreachable' } & Doubtful)
  | ({ readonly problem: 'upstream-late' } & Doubtful)
  /** Too many requests of the grant wait for a connection. */
  | { readonly problem: 'too-many-waiting'; readonly limit: number }
  /** Too many contents of Binaries arrive at the same time. */
  | { readonly problem: 'too-many-contents'; readonly limit: number }
  /** The response is invalid. `why` is for the log only; `excess` names the limit that it exceeds. */
  | ({ readonly problem: 'upstream-broken'; readonly why: string; readonly excess?: string } & Doubtful)
  /** It refuses. `outcome` is its OperationOutcome, as far as the caller may see it. */
  | {
      readonly problem: 'upstream-declined'
      readonly status: number
      readonly outcome: OperationOutcome
      readonly retryAfter?: string | undefined
      readonly allow?: string | undefined
    }
  /** A create has replaced a resource that another client created at the same time. */
  | Lost<'overwritten'>
  /** A delete has deleted a version that another client wrote at the same time. */
  | Lost<'deleted-newer'>
  | { readonly problem: 'undeleted'; readonly type: string; readonly id: string }
  /** It cannot create a resource under an id of the caller without the risk of replacing another one. */
  | { readonly problem: 'unbound-create'; readonly type: string }
  /** It does not return the version, so that a write cannot depend on the content that was checked. */
  | { readonly problem: 'no-version'; readonly type: string }
  | { readonly problem: 'excluded-type'; readonly type: string }
  /** There is no such asynchronous job, or another client or user started it. */
  | { readonly problem: 'absent-job' }
  /** Other resources refer to a resource that was to be deleted. */
  | { readonly problem: 'referred'; readonly type: string; readonly id: string }
  /** `entries` are the outcomes of all entries, if the backend has carried out others all the same. */
  | {
      readonly problem: 'entry-failed'
      readonly entry: number
      readonly cause: Failure
      readonly entries?: readonly FhirResponse[] | undefined
      /** The client has sent one write (`FhirRequest.isComposed`). */
      readonly isComposed?: true
    }

interface Doubtful {
  /** The request was sent and changes data, so that the change may have been made. */
  readonly mayBeDone?: true
}

/** A change of the upstream that affects versions which were not checked. */
interface Lost<Problem> {
  readonly problem: Problem
  readonly type: string
  readonly id: string
  /** All versions concerned, as far as they are known, for the audit trail. */
  readonly affected: readonly SentContent[]
}

/** The failure of a transaction because of one entry. */
export function failEntry(entry: number, cause: Failure, entries?: readonly FhirResponse[]): Failure {
  return fail({ problem: 'entry-failed', entry, cause, entries })
}
