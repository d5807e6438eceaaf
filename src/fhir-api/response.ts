import type { Readable } from 'node:stream'
import type { SentContent } from '../audit/index.ts'
import { type Failed, fail } from '../core/index.ts'
import {
  createEntryFailure,
  createErrorResponse,
  type ErrorResponse,
  type FhirProblem,
  type NativeContent,
  type OperationOutcome,
  toErrorResponse,
} from '../fhir/index.ts'

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
  | { readonly problem: 'upstream-unreachable'; readonly mayBeDone?: true }
  /** `mayBeDone`: the request was sent and changes data, so that the change may have been made. */
  | { readonly problem: 'upstream-late'; readonly mayBeDone?: true }
  /** Too many requests of the grant wait for a connection. */
  | { readonly problem: 'too-many-waiting'; readonly limit: number }
  /** Too many contents of Binaries arrive at the same time. */
  | { readonly problem: 'too-many-contents'; readonly limit: number }
  /** The response is invalid. `why` is for the log only; `excess` names the limit that it exceeds. */
  | { readonly problem: 'upstream-broken'; readonly why: string; readonly excess?: string }
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

/** The one place where a failure becomes a response. */
export function toResponse(failure: Failure): FhirResponse {
  const { status, outcome, headers } = explain(failure)
  const entries = failure.problem === 'entry-failed' ? failure.entries : undefined
  return { status, headers, body: JSON.stringify(outcome), ...(entries && { entries }) }
}

const MAY_BE_DONE =
  'The change may have been carried out. Read the resource before you send the request again.'

function explain(failure: Failure): ErrorResponse {
  switch (failure.problem) {
    case 'upstream-unreachable':
      return createErrorResponse(
        503,
        'transient',
        `The upstream FHIR server does not answer. ${failure.mayBeDone ? MAY_BE_DONE : 'Try again soon.'}`,
        { 'retry-after': '2' },
      )
    case 'upstream-late':
      return createErrorResponse(
        504,
        'transient',
        `The upstream FHIR server did not answer in time.${failure.mayBeDone ? ` ${MAY_BE_DONE}` : ''}`,
      )
    case 'too-many-waiting':
      return createErrorResponse(
        429,
        'throttled',
        `More than ${failure.limit} requests of this grant are waiting for the FHIR server. Try again soon.`,
        { 'retry-after': '2' },
      )
    case 'too-many-contents':
      return createErrorResponse(
        503,
        'transient',
        `Cannot receive content: ${failure.limit} others are being received. Try again soon.`,
        { 'retry-after': '5' },
      )
    case 'upstream-broken':
      return createErrorResponse(502, 'transient', 'The upstream FHIR server sent an invalid response.')
    case 'upstream-declined': {
      const { status, outcome, retryAfter, allow } = failure
      const headers = {
        ...(retryAfter !== undefined && { 'retry-after': retryAfter }),
        ...(allow !== undefined && { allow }),
      }
      return { status, outcome, headers }
    }
    case 'overwritten':
      return createErrorResponse(
        409,
        'conflict',
        `Cannot create ${failure.type}/${failure.id}: another client created it at the same time, and the upstream FHIR server has replaced it. The audit trail has a record of this`,
      )
    case 'deleted-newer':
      return createErrorResponse(
        409,
        'conflict',
        `Cannot delete ${failure.type}/${failure.id}: another client changed it at the same time, and the upstream FHIR server has deleted the new version. The audit trail has a record of this`,
      )
    // The status of an uncertain outcome: the other entries are carried out.
    case 'undeleted':
      return createErrorResponse(
        502,
        'conflict',
        `Cannot delete ${failure.type}/${failure.id}: it was changed at the same time, and the upstream FHIR server has carried out the transaction without this entry`,
      )
    case 'referred':
      return createErrorResponse(
        409,
        'conflict',
        `Cannot delete ${failure.type}/${failure.id}: other resources refer to it`,
      )
    case 'unbound-create':
      return createErrorResponse(
        405,
        'not-supported',
        `Cannot create this ${failure.type} with PUT: the upstream FHIR server could replace another resource. Use POST ${failure.type}`,
        { allow: 'GET, HEAD' },
      )
    case 'no-version':
      return createErrorResponse(
        501,
        'not-supported',
        `Cannot write this ${failure.type}: the upstream FHIR server does not return its version`,
      )
    case 'excluded-type':
      return createErrorResponse(
        404,
        'not-found',
        `Cannot find ${failure.type} here: the gateway does not read this type from the upstream FHIR server`,
      )
    case 'absent-job':
      return createErrorResponse(
        404,
        'not-found',
        'There is no such job: use the status URL as the client that started the job received it',
      )
    case 'entry-failed':
      return failure.isComposed
        ? explain(failure.cause)
        : createEntryFailure(failure.entry, explain(failure.cause))
    default:
      return toErrorResponse(failure)
  }
}
