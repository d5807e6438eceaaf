import { AuthorizationResponseError, ResponseBodyError, WWWAuthenticateChallengeError } from 'openid-client'
import { isTimeout } from '../fetch-json.ts'
import { describeFailedCheck } from './failed-check.ts'

/** Why the auth server did not give tokens. */
export type OAuthProblem =
  /** It said no, with an OAuth error (RFC 6749, 4.1.2.1 and 5.2). */
  | { readonly kind: 'refused'; readonly error: string; readonly description?: string }
  | { readonly kind: 'away' }
  | { readonly kind: 'slow' }
  /** Its answer did not pass a check: issuer, state, nonce, audience, signature, form. */
  | { readonly kind: 'unacceptable'; readonly code: string; readonly check: string }

/** What an error of `openid-client` means. Nothing of the answer's content is taken over but the OAuth error. */
export function toOAuthProblem(error: unknown): OAuthProblem {
  if (error instanceof AuthorizationResponseError) return refused(error.error, error.error_description)
  if (error instanceof ResponseBodyError)
    return error.status >= 500 || error.status === 429
      ? { kind: 'away' }
      : refused(error.error, error.error_description)
  // A 401 with a challenge: the auth server does not know this client.
  if (error instanceof WWWAuthenticateChallengeError) return refused('invalid_client', undefined)
  if (isTimeout(error)) return { kind: 'slow' }
  if (error instanceof TypeError && error.message === 'fetch failed') return { kind: 'away' }
  if (isServerFailure(error)) return { kind: 'away' }
  return { kind: 'unacceptable', code: codeOf(error), check: describeFailedCheck(error) }
}

function refused(error: string, description: string | undefined): OAuthProblem {
  return { kind: 'refused', error, ...(description === undefined ? {} : { description }) }
}

/** A 5xx without an OAuth body (a proxy's, say): the library hands over the response as the cause. */
function isServerFailure(error: unknown): boolean {
  return error instanceof Error && error.cause instanceof Response && error.cause.status >= 500
}

function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return 'UNKNOWN'
  return 'code' in error && typeof error.code === 'string' ? error.code : error.name
}
