import { Refusal } from '../refusal.ts'
import type { Finding, RequestInput } from './request.ts'

// A SHA-256 hash as base64url.
const CHALLENGE = /^[A-Za-z0-9_-]{43}$/

/**
 * PKCE with S256 (SMART 2.2), unless an administrator made an exception for an older client. Without a method the
 * challenge would be `plain` (RFC 7636, 4.3), which is refused.
 */
export function checkPkce({ client, parameters }: RequestInput): Finding | Refusal {
  const codeChallenge = parameters.get('code_challenge')
  const isLeftOut = codeChallenge === undefined && parameters.get('code_challenge_method') === undefined
  if (isLeftOut && !client.pkceRequired) return {}
  if (codeChallenge === undefined)
    return new Refusal('invalid_request', 'The parameter code_challenge is missing: PKCE is required.')
  if (parameters.get('code_challenge_method') !== 'S256')
    return new Refusal('invalid_request', 'The code_challenge_method must be S256.')
  return CHALLENGE.test(codeChallenge)
    ? { codeChallenge }
    : new Refusal('invalid_request', 'The code_challenge is not the base64url of a SHA-256.')
}
