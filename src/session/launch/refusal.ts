import type { Failure } from '../failure.ts'
import type { OAuthProblem } from '../oauth/errors.ts'

/** Why a launch does not go on. Each has a page (refusal-page.ts). */
export type LaunchRefusal =
  | { readonly kind: 'bad-parameter'; readonly name: 'iss' | 'launch' }
  | { readonly kind: 'unknown-issuer'; readonly iss: string }
  | { readonly kind: 'no-discovery'; readonly failure: Failure }
  /** Wrong, late or used before, or of another browser: they are not told apart. */
  | { readonly kind: 'unknown-state' }
  /** The browser came back with an address that is not the auth server's answer. */
  | { readonly kind: 'bad-callback'; readonly code: string }
  | { readonly kind: 'no-tokens'; readonly problem: OAuthProblem }
  | { readonly kind: 'no-patient' }
