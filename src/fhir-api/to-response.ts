import { fill } from '../core/index.ts'
import {
  type Because,
  createFaultsOutcome,
  createOutcome,
  getFhirWords,
  type OperationOutcome,
} from '../fhir/index.ts'
import type { Failure, FhirResponse } from './response.ts'

/** The one place where a failure becomes a response. */
export function toResponse(failure: Failure): FhirResponse {
  const { status, outcome, headers } = explain(failure)
  const entries = failure.reason === 'entry-failed' ? failure.entries : undefined
  const refused = failure.reason === 'refused' ? failure.refused : undefined
  return {
    status,
    headers,
    body: JSON.stringify(outcome),
    ...(entries && { entries }),
    ...(refused && { refused }),
  }
}

/** The response to an interaction that is not performed. */
interface ErrorResponse {
  readonly status: number
  readonly outcome: OperationOutcome
  readonly headers?: Readonly<Record<string, string>> | undefined
}

function explain(failure: Failure): ErrorResponse {
  switch (failure.reason) {
    case 'refused':
      return failure.refused
    case 'upstream-declined':
      return failure
    case 'entry-failed':
      return failure.isComposed
        ? explain(failure.cause)
        : createEntryFailure(failure.entry, explain(failure.cause))
    case 'invalid-resource':
      return { status: 422, outcome: createFaultsOutcome(failure.faults) }
    default: {
      const { status, code, sentence, hint, retryAfter } = getFhirWords(failure.reason)
      return {
        status,
        outcome: createOutcome(code, fill(sentence, failure.facts), { hint, ...locateEntry(failure) }),
        headers: listHeaders(failure, retryAfter),
      }
    }
  }
}

function listHeaders({ allow, headers }: Because, retryAfter: string | undefined): ErrorResponse['headers'] {
  if (retryAfter !== undefined) return { 'retry-after': retryAfter }
  return allow ? { allow: allow.join(', ') } : headers
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

function locateEntry({ entry }: Because): { readonly expression?: readonly string[] } {
  return entry === undefined ? {} : { expression: [`Bundle.entry[${entry}]`] }
}
