import {
  entryFailed,
  type Failed,
  type FhirProblem,
  fail,
  type OperationOutcome,
  type Turndown,
  turndown,
  turndownOf,
} from '../../fhir/index.ts'
import type { Answer } from './answer.ts'

/** Why an interaction is not done: as on any FHIR server, or for the sake of the upstream. */
export type Problem = FhirProblem | (Failed & UpstreamReason)

type UpstreamReason =
  /** It cannot be reached, or was not a moment ago and is left alone. */
  | { readonly problem: 'upstream-away' }
  | { readonly problem: 'upstream-late' }
  /** So many requests of the grant wait for a connection that one more would not be sent in time. */
  | { readonly problem: 'too-many-waiting'; readonly limit: number }
  /** The response is invalid. `why` is for the log only; `excess` names the limit that it exceeds. */
  | { readonly problem: 'upstream-broken'; readonly why: string; readonly excess?: string }
  /** It would not do it, and says so; `said` is released as it is. */
  | {
      readonly problem: 'upstream-declined'
      readonly status: number
      readonly said: OperationOutcome
      readonly retryAfter?: string | undefined
      readonly allow?: string | undefined
    }
  /** What it holds cannot be bound to what was judged. */
  | { readonly problem: 'no-version'; readonly type: string }
  | { readonly problem: 'kept-elsewhere'; readonly type: string }
  | { readonly problem: 'gateway-entry-failed'; readonly entry: number; readonly cause: Problem }

/** A page that is too large, though it was asked for with one resource. */
export function pageProblem(problem: Problem): Problem {
  if (problem.problem !== 'upstream-broken' || problem.excess === undefined) return problem
  return fail({
    problem: 'too-costly',
    text: `Cannot use a page of the upstream FHIR server, even with _count=1: ${problem.excess}`,
  })
}

export function tooCostly(most: number): Problem {
  return fail({
    problem: 'too-costly',
    text: `Cannot check more than ${most} resources for this request: request less data`,
  })
}

/** The one place where a problem becomes a response. */
export function answerOf(problem: Problem): Answer {
  const { status, outcome, headers } = responseTo(problem)
  return { status, headers: headers ?? {}, body: JSON.stringify(outcome) }
}

function responseTo(problem: Problem): Turndown {
  switch (problem.problem) {
    case 'upstream-away':
      return {
        ...turndown(503, 'transient', 'The upstream FHIR server does not answer. Try again soon.'),
        headers: { 'retry-after': '2' },
      }
    case 'upstream-late':
      return turndown(504, 'transient', 'The upstream FHIR server did not answer in time.')
    case 'too-many-waiting':
      return {
        ...turndown(
          429,
          'throttled',
          `More than ${problem.limit} requests of this grant are waiting for the FHIR server. Try again soon.`,
        ),
        headers: { 'retry-after': '2' },
      }
    case 'upstream-broken':
      return turndown(502, 'transient', 'The upstream FHIR server sent an invalid response.')
    case 'upstream-declined': {
      const { status, said, retryAfter, allow } = problem
      const headers = {
        ...(retryAfter !== undefined && { 'retry-after': retryAfter }),
        ...(allow !== undefined && { allow }),
      }
      return { status, outcome: said, headers }
    }
    case 'no-version':
      return turndown(
        501,
        'not-supported',
        `Cannot write this ${problem.type}: the upstream FHIR server does not return its version`,
      )
    case 'kept-elsewhere':
      return turndown(
        404,
        'not-found',
        `Cannot find ${problem.type} here: it is not taken from the FHIR server`,
      )
    case 'gateway-entry-failed':
      return entryFailed(problem.entry, responseTo(problem.cause))
    default:
      return turndownOf(problem)
  }
}
