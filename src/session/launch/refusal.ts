import type { Failure } from '../failure.ts'
import {
  LAUNCH_PARAMETER_CHARACTERS,
  PENDING_LAUNCHES_IN_ALL,
  PENDING_LAUNCHES_PER_NETWORK,
} from '../limits.ts'
import type { OAuthProblem } from '../oauth/errors.ts'

/** Why a launch does not go on. Each has a page (refusal-page.ts). */
export type LaunchRefusal =
  | { readonly kind: 'bad-parameter'; readonly name: 'iss' | 'launch' }
  | LongParameter
  | { readonly kind: 'unknown-issuer'; readonly iss: string }
  | { readonly kind: 'no-discovery'; readonly failure: Failure }
  | { readonly kind: 'too-many-launches' }
  /** Wrong, late or used before, or of another browser: they are not told apart. */
  | { readonly kind: 'unknown-state'; readonly check: string }
  /** The browser came back with an address that is not the auth server's answer. */
  | { readonly kind: 'bad-callback'; readonly code: string; readonly check: string }
  | { readonly kind: 'no-tokens'; readonly problem: OAuthProblem }
  | { readonly kind: 'no-patient' }

export const TOO_MANY = `More than ${PENDING_LAUNCHES_PER_NETWORK} launches from one network, or ${PENDING_LAUNCHES_IN_ALL} in all, are under way`

interface LongParameter {
  readonly kind: 'long-parameter'
  readonly name: string
  readonly limit: number
}

/** A parameter that is longer than it may be. */
export function findLongParameter(query: Readonly<Record<string, unknown>>): LongParameter | undefined {
  for (const [name, limit] of Object.entries(LAUNCH_PARAMETER_CHARACTERS)) {
    const value = query[name]
    if (typeof value === 'string' && value.length > limit) return { kind: 'long-parameter', name, limit }
  }
  return undefined
}

/** Which check a launch did not pass and what was expected, for the log: no token, code, state or nonce. */
export function describeRefusal(refusal: LaunchRefusal, acceptedIssuers: readonly string[]): string {
  switch (refusal.kind) {
    case 'bad-parameter':
      return `parameter ${refusal.name} is missing or repeated`
    case 'long-parameter':
      return `parameter ${refusal.name} has more than ${refusal.limit} characters`
    case 'unknown-issuer':
      return `iss ${describeUrl(refusal.iss)}, expected one of ${acceptedIssuers.join(', ')}`
    case 'no-discovery':
      return describeFailure(refusal.failure)
    case 'too-many-launches':
      return TOO_MANY
    case 'unknown-state':
    case 'bad-callback':
      return refusal.check
    case 'no-tokens':
      return describeProblem(refusal.problem)
    case 'no-patient':
      return 'token response has no patient'
  }
}

/** Anybody can send it: its query may hold anything. */
function describeUrl(text: string): string {
  const url = URL.parse(text)
  return url ? `${url.origin}${url.pathname}`.slice(0, LONGEST_URL) : 'is not a URL'
}

const LONGEST_URL = 200

function describeFailure(failure: Failure): string {
  if (failure.kind === 'unexpected-answer') return failure.check ?? failure.problem
  return 'server' in failure ? `${failure.server} is ${failure.kind}` : failure.kind
}

function describeProblem(problem: OAuthProblem): string {
  if (problem.kind === 'unacceptable') return problem.check
  return problem.kind === 'refused'
    ? `the auth server refused: ${problem.error}`
    : `the auth server is ${problem.kind}`
}
