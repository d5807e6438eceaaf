import { API_REASONS, type AppFailure, failApp, getAppWords } from '../app-reasons/index.ts'
import { fill, isTimeout } from '../core/index.ts'
import { createOutcome, type IssueCode, type OperationOutcome, parseExact } from '../fhir/index.ts'

/** Why a request failed. No failure contains a token or patient data. */
export type SessionFailure = AppFailure<keyof typeof API_REASONS>

export type Result<T> = T | SessionFailure

/** Whether a server did not answer as it should. */
export function isOfServer({ reason }: SessionFailure): boolean {
  return getAppWords(reason).status >= 500
}

/** The reason of a failure, for its audit record. */
export function nameReason({ reason, facts }: AppFailure): object {
  return Object.keys(facts).length === 0 ? { reason } : { reason, facts }
}

/** The response to a failure (API-11). */
export function toResponse({ reason, facts }: SessionFailure): {
  readonly status: number
  readonly body: OperationOutcome
} {
  const { status, code, sentence }: Words = API_REASONS[reason]
  return { status, body: createOutcome(code, fill(sentence, facts)) }
}

interface Words {
  readonly status: number
  readonly code: IssueCode
  readonly sentence: string
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
    return failApp(isTimeout(error) ? 'records-slow' : 'records-unreachable')
  }
}

function tryParseExact(text: string): unknown {
  try {
    return parseExact(text)
  } catch {
    return undefined
  }
}
