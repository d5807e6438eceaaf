import { type Failed, fail, isTimeout } from '../core/index.ts'
import { createOutcome, type IssueCode, type OperationOutcome, parseExact } from '../fhir/index.ts'

type Upstream = 'FHIR server' | 'auth server'

/** Why a request failed. No failure contains a token or patient data. */
export type Failure = Failed & Reason

type Reason =
  | { readonly kind: 'no-session' }
  | { readonly kind: 'session-ended' }
  | { readonly kind: 'another-session' }
  | { readonly kind: 'several-sessions' }
  | { readonly kind: 'missing-scope'; readonly missing: readonly string[] }
  | { readonly kind: 'bad-parameter'; readonly name: string; readonly expected: string }
  | { readonly kind: 'token-refused' }
  | { readonly kind: 'access-refused' }
  | { readonly kind: 'not-found' }
  | { readonly kind: 'unreachable'; readonly server: Upstream }
  | { readonly kind: 'slow'; readonly server: Upstream }
  | {
      readonly kind: 'unexpected-response'
      readonly server: Upstream
      readonly problem: string
      /** For the log: the check that the response failed. */
      readonly check?: string
    }

export type Result<T> = T | Failure

/** The server that failed, if one did. */
export function findServer(failure: Failure): Upstream | undefined {
  const { kind } = failure
  return kind === 'unreachable' || kind === 'slow' || kind === 'unexpected-response'
    ? failure.server
    : undefined
}

/** The response to a failure (API-11). */
export function toResponse(failure: Failure): { readonly status: number; readonly body: OperationOutcome } {
  switch (failure.kind) {
    case 'no-session':
      return makeResponse(401, 'login', 'No session. Launch the app from the patient list.')
    case 'session-ended':
      return makeResponse(401, 'login', 'The session has ended. Launch the app again from the patient list.')
    case 'another-session':
      return makeResponse(
        409,
        'conflict',
        'This session is not open in this browser. Launch the app again from the patient list.',
      )
    case 'several-sessions':
      return makeResponse(
        409,
        'conflict',
        'Several sessions are open in this browser. Name one in the header X-Session-Id: the last part of the URL /s/<sessionId> to which its launch led.',
      )
    case 'missing-scope':
      return makeResponse(403, 'forbidden', `Insufficient scope. Not granted: ${failure.missing.join(' ')}`)
    case 'bad-parameter':
      return makeResponse(
        400,
        'invalid',
        `Cannot use parameter ${failure.name}: expected ${failure.expected}`,
      )
    case 'token-refused':
      return makeResponse(
        401,
        'login',
        'The FHIR server no longer accepts this session. Launch the app again.',
      )
    case 'access-refused':
      return makeResponse(403, 'forbidden', 'The FHIR server refuses access to this record.')
    case 'not-found':
      return makeResponse(404, 'not-found', 'The FHIR server has no such record.')
    case 'unreachable':
      return makeResponse(502, 'transient', `The ${failure.server} is unreachable. Try again.`)
    case 'slow':
      return makeResponse(504, 'transient', `The ${failure.server} did not respond in time. Try again.`)
    case 'unexpected-response':
      return makeResponse(
        502,
        'transient',
        `The ${failure.server} returned an invalid response: ${failure.problem}`,
      )
  }
}

function makeResponse(status: number, code: IssueCode, text: string) {
  return { status, body: createOutcome(code, text) }
}

/** `json` is exact JSON (`parseExact`), or undefined if the body is not JSON. */
export interface JsonResponse {
  readonly status: number
  readonly json: unknown
}

/** Requests JSON from the FHIR server. Does not follow redirects, which could carry the bearer token to another host. */
export async function fetchJson(
  fetch: typeof globalThis.fetch,
  url: string,
  options: { readonly timeoutMs: number; readonly headers: Readonly<Record<string, string>> },
): Promise<Result<JsonResponse>> {
  try {
    const response = await fetch(url, {
      headers: options.headers,
      redirect: 'manual',
      signal: AbortSignal.timeout(options.timeoutMs),
    })
    return { status: response.status, json: tryParseExact(await response.text()) }
  } catch (error) {
    return fail({ kind: isTimeout(error) ? 'slow' : 'unreachable', server: 'FHIR server' })
  }
}

function tryParseExact(text: string): unknown {
  try {
    return parseExact(text)
  } catch {
    return undefined
  }
}
