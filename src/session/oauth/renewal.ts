import { refreshTokenGrant } from 'openid-client'
import type { AppContext } from '../context.ts'
import { type Failure, fail, type Result, succeed } from '../failure.ts'
import type { Session } from '../sessions/session.ts'
import { createOAuthClient } from './client.ts'
import { type OAuthProblem, toOAuthProblem } from './errors.ts'
import { describeTokenFault, readTokenGrant, type TokenGrant } from './token-grant.ts'

/** Buys new tokens with a refresh token. `session-over` when the auth server no longer gives any for it. */
export async function redeemRefreshToken(
  context: AppContext,
  session: Session,
  refreshToken: string,
): Promise<Result<TokenGrant>> {
  const found = await context.discovery.find(session.fhirBaseUrl)
  if (!found.ok) return found
  // The token goes to the auth server that gave it and to no other, whatever the FHIR server says today.
  if (found.value.issuer !== session.issuer)
    return refuse(context, session, `smart-configuration issuer, expected ${session.issuer}`)
  try {
    const client = await createOAuthClient(context, session.fhirBaseUrl, found.value)
    const response = await refreshTokenGrant(client, refreshToken)
    const grant = readTokenGrant(response)
    if (!grant) return refuse(context, session, describeTokenFault(response))
    // A renewal keeps the patient of the launch: tokens that speak of another one are not used.
    if (grant.patientId !== undefined && grant.patientId !== session.patientId)
      return refuse(context, session, 'token response patient, expected the patient of the session')
    return succeed(grant)
  } catch (error) {
    const problem = toOAuthProblem(error)
    logRefusal(context, session, problem.kind, checkOf(problem))
    return fail(failureOf(problem))
  }
}

function refuse(context: AppContext, session: Session, check: string): Result<TokenGrant> {
  logRefusal(context, session, 'unacceptable', check)
  return fail({ kind: 'session-over' })
}

function logRefusal({ log }: AppContext, { sessionId }: Session, problem: string, check?: string): void {
  log.warn({ sessionId, problem, ...(check !== undefined && { check }) }, 'Cannot renew session tokens')
}

function checkOf(problem: OAuthProblem): string | undefined {
  if (problem.kind === 'unacceptable') return problem.check
  return problem.kind === 'refused' ? problem.error : undefined
}

function failureOf(problem: OAuthProblem): Failure {
  switch (problem.kind) {
    case 'away':
    case 'slow':
      return { kind: problem.kind, server: 'auth server' }
    case 'refused':
    case 'unacceptable':
      return { kind: 'session-over' }
  }
}
