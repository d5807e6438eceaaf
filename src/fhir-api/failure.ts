import {
  createEntryFailure,
  createErrorResponse,
  type ErrorResponse,
  type Failed,
  type FhirProblem,
  fail,
  isFailure as hasBrand,
  type OperationOutcome,
  toErrorResponse,
} from '../fhir/index.ts'
import type { FhirResponse } from './response.ts'

/** Why an interaction fails: for a reason that any FHIR server may have, or because of the upstream server. */
export type Failure = FhirProblem | (Failed & UpstreamReason)

type UpstreamReason =
  /** It does not respond, or did not a moment ago. */
  | { readonly problem: 'upstream-away' }
  | { readonly problem: 'upstream-late' }
  /** So many requests of the grant wait for a connection that another one would not be sent in time. */
  | { readonly problem: 'too-many-waiting'; readonly limit: number }
  /** The response is invalid. `why` is for the log only; `excess` names the limit that it exceeds. */
  | { readonly problem: 'upstream-broken'; readonly why: string; readonly excess?: string }
  /** It refuses; `said` is its OperationOutcome, as far as the caller may see it. */
  | {
      readonly problem: 'upstream-declined'
      readonly status: number
      readonly said: OperationOutcome
      readonly retryAfter?: string | undefined
      readonly allow?: string | undefined
    }
  /** It does not return the version, so that a write cannot be bound to the content that was checked. */
  | { readonly problem: 'no-version'; readonly type: string }
  | { readonly problem: 'kept-elsewhere'; readonly type: string }
  | { readonly problem: 'entry-failed'; readonly entry: number; readonly cause: Failure }

/** Whether an interaction failed. Recognised by a brand, so that no data can be mistaken for a failure. */
export function isFailure<T>(value: T | Failure): value is Failure {
  return typeof value === 'object' && value !== null && hasBrand(value)
}

/** The failure of an entry, which fails the whole transaction. */
export function failEntry(entry: number, cause: Failure): Failure {
  return fail({ problem: 'entry-failed', entry, cause })
}

/** The one place where a failure becomes a response. */
export function toResponse(failure: Failure): FhirResponse {
  const { status, outcome, headers } = explain(failure)
  return { status, headers, body: JSON.stringify(outcome) }
}

function explain(failure: Failure): ErrorResponse {
  switch (failure.problem) {
    case 'upstream-away':
      return {
        ...createErrorResponse(503, 'transient', 'The upstream FHIR server does not answer. Try again soon.'),
        headers: { 'retry-after': '2' },
      }
    case 'upstream-late':
      return createErrorResponse(504, 'transient', 'The upstream FHIR server did not answer in time.')
    case 'too-many-waiting':
      return {
        ...createErrorResponse(
          429,
          'throttled',
          `More than ${failure.limit} requests of this grant are waiting for the FHIR server. Try again soon.`,
        ),
        headers: { 'retry-after': '2' },
      }
    case 'upstream-broken':
      return createErrorResponse(502, 'transient', 'The upstream FHIR server sent an invalid response.')
    case 'upstream-declined': {
      const { status, said, retryAfter, allow } = failure
      const headers = {
        ...(retryAfter !== undefined && { 'retry-after': retryAfter }),
        ...(allow !== undefined && { allow }),
      }
      return { status, outcome: said, headers }
    }
    case 'no-version':
      return createErrorResponse(
        501,
        'not-supported',
        `Cannot write this ${failure.type}: the upstream FHIR server does not return its version`,
      )
    case 'kept-elsewhere':
      return createErrorResponse(
        404,
        'not-found',
        `Cannot find ${failure.type} here: it is not taken from the FHIR server`,
      )
    case 'entry-failed':
      return createEntryFailure(failure.entry, explain(failure.cause))
    default:
      return toErrorResponse(failure)
  }
}
