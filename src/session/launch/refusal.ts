import type { Failure } from '../failure.ts'
import { LAUNCH_PARAMETER_CHARACTERS, PENDING_LAUNCHES_PER_NETWORK } from '../limits.ts'
import type { OAuthProblem } from '../oauth/client.ts'

export type LaunchRefusal =
  | { readonly kind: 'bad-parameter'; readonly name: 'iss' | 'launch' }
  | LongParameter
  | { readonly kind: 'unknown-issuer'; readonly iss: string }
  | { readonly kind: 'no-discovery'; readonly failure: Failure }
  | { readonly kind: 'too-many-launches' }
  /** The state is wrong, late, already used, or from another browser. The user is not told which. */
  | { readonly kind: 'unknown-state'; readonly check: string }
  | { readonly kind: 'bad-callback'; readonly code: string; readonly check: string }
  | { readonly kind: 'no-tokens'; readonly problem: OAuthProblem }
  | { readonly kind: 'no-patient' }

export const TOO_MANY = `More than ${PENDING_LAUNCHES_PER_NETWORK} launches from one network are pending`

interface LongParameter {
  readonly kind: 'long-parameter'
  readonly name: string
  readonly limit: number
}

export function findLongParameter(query: Readonly<Record<string, unknown>>): LongParameter | undefined {
  for (const [name, limit] of Object.entries(LAUNCH_PARAMETER_CHARACTERS)) {
    const value = query[name]
    if (typeof value === 'string' && value.length > limit) return { kind: 'long-parameter', name, limit }
  }
  return undefined
}

/** Names the failed check and the expected value for the log, without a token, code, state or nonce. */
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

/** Anybody can send this URL, so the log leaves out its query. */
function describeUrl(text: string): string {
  const url = URL.parse(text)
  return url ? `${url.origin}${url.pathname}`.slice(0, LONGEST_URL) : 'is not a URL'
}

const LONGEST_URL = 200

function describeFailure(failure: Failure): string {
  if (failure.kind === 'unexpected-response') return failure.check ?? failure.problem
  return 'server' in failure ? `${failure.server} is ${failure.kind}` : failure.kind
}

function describeProblem(problem: OAuthProblem): string {
  if (problem.kind === 'unacceptable') return problem.check
  return problem.kind === 'refused'
    ? `the auth server refused: ${problem.error}`
    : `the auth server is ${problem.kind}`
}
