import {
  createFaultsOutcome,
  createOutcome,
  describeHiddenTarget,
  describeUnsupportedOperation,
  type IssueCode,
  type OperationOutcome,
  refuseOutsideGrant,
} from '../fhir/index.ts'
import type { Failure, FhirResponse } from './response.ts'

/** The one place where a failure becomes a response. */
export function toResponse(failure: Failure): FhirResponse {
  const { status, outcome, headers } = explain(failure)
  const entries = failure.problem === 'entry-failed' ? failure.entries : undefined
  return { status, headers, body: JSON.stringify(outcome), ...(entries && { entries }) }
}

/** The response to an interaction that is not performed. */
interface ErrorResponse {
  readonly status: number
  readonly outcome: OperationOutcome
  readonly headers?: Readonly<Record<string, string>>
}

// An absent resource gets the same text, so that the response reveals nothing (docs/decisions/0021-refused-and-absent.md).
const OUTSIDE_ACCESS =
  "The token's scopes do not cover this resource, or it does not exist. A scope for its patient, in a wider context or without a filter may cover it; a user/ scope covers no more than the user's own rights"

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
      return createErrorResponse(
        502,
        'transient',
        `The upstream FHIR server sent an invalid response.${failure.mayBeDone ? ` ${MAY_BE_DONE}` : ''}`,
      )
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
    case 'misunderstood':
      return createErrorResponse(
        failure.status,
        failure.isExcess ? 'too-costly' : getIssueCode(failure.status),
        failure.text,
        failure.allow && { allow: failure.allow.join(', ') },
      )
    case 'refused': {
      const { status, headers, outcome } = failure.refused
      return { status, headers, outcome }
    }
    case 'outside-access':
      if (failure.element !== undefined)
        return createErrorResponse(403, 'forbidden', describeHiddenTarget(failure.element))
      return { status: 403, outcome: refuseOutsideGrant(OUTSIDE_ACCESS).outcome }
    case 'absent':
      return createErrorResponse(404, 'not-found', `Cannot find ${failure.type}/${failure.id}`)
    case 'gone':
      return createErrorResponse(
        410,
        'deleted',
        `Cannot read ${failure.type}/${failure.id}: it has been deleted`,
      )
    case 'malformed-body':
      return createErrorResponse(400, 'structure', failure.text)
    case 'body-too-large':
      return createErrorResponse(
        413,
        'too-long',
        `Cannot read body: it is larger than ${failure.limit} bytes`,
      )
    case 'wrong-content-type':
      return createErrorResponse(
        415,
        'not-supported',
        `Cannot read body: expected ${failure.expected.join(' or ')}`,
        // RFC 5789, 2.2
        failure.isPatch ? { 'accept-patch': failure.expected.join(', ') } : undefined,
      )
    case 'wrong-content-encoding':
      return createErrorResponse(
        415,
        'not-supported',
        `Cannot read body: expected the encoding ${failure.expected}, or none`,
        // RFC 9110, 12.5.3
        { 'accept-encoding': failure.expected },
      )
    case 'not-acceptable':
      return createErrorResponse(406, 'not-supported', 'Only application/fhir+json is supported.')
    case 'invalid-resource':
      return { status: 422, outcome: createFaultsOutcome(failure.faults) }
    case 'contradiction':
      return createErrorResponse(400, 'invalid', failure.text)
    case 'unusable-patch':
      return createErrorResponse(422, 'processing', failure.text)
    case 'stale':
      return createErrorResponse(412, 'conflict', failure.text)
    case 'multiple-matches':
      return createErrorResponse(
        412,
        'multiple-matches',
        `Cannot choose a ${failure.type}: several match the search parameters`,
      )
    case 'no-match':
      return createErrorResponse(
        404,
        'not-found',
        failure.element === undefined
          ? `Cannot find a ${failure.type} that matches the search parameters`
          : `Cannot resolve ${failure.element}: no ${failure.type} matches its search parameters`,
      )
    case 'bad-search':
      return createErrorResponse(400, failure.code, failure.text)
    case 'too-costly':
      return createErrorResponse(400, 'too-costly', failure.text)
    case 'bad-bundle':
      return { status: 400, outcome: createOutcome('structure', failure.text, locateEntry(failure.entry)) }
    case 'unsupported-operation':
      return createErrorResponse(404, 'not-supported', describeUnsupportedOperation(failure.name))
  }
}

/** The response to a transaction whose entry failed: that of the entry, with its position. */
function createEntryFailure(entry: number, failed: ErrorResponse): ErrorResponse {
  const at = `Bundle.entry[${entry}]`
  const issue = failed.outcome.issue.map(it => ({
    ...it,
    diagnostics: `${at}: ${it.diagnostics}`,
    expression: it.expression ?? [at],
  }))
  return { ...failed, outcome: { ...failed.outcome, issue } }
}

function createErrorResponse(
  status: number,
  code: IssueCode,
  text: string,
  headers?: Readonly<Record<string, string>>,
): ErrorResponse {
  return { status, outcome: createOutcome(code, text), ...(headers && { headers }) }
}

function getIssueCode(status: 400 | 404 | 405 | 415): 'invalid' | 'not-found' | 'not-supported' {
  return status === 404 ? 'not-found' : status === 400 ? 'invalid' : 'not-supported'
}

function locateEntry(entry: number | undefined): { readonly expression?: readonly string[] } {
  return entry === undefined ? {} : { expression: [`Bundle.entry[${entry}]`] }
}
