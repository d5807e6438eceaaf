import { refreshTokenGrant } from 'openid-client'
import type { AppContext } from '../context.ts'
import { type Failure, fail, type Result, succeed } from '../failure.ts'
import type { Session } from '../sessions/session.ts'
import { oauthClient } from './client.ts'
import { type OAuthProblem, oauthProblem } from './errors.ts'
import { readTokenGrant, type TokenGrant } from './token-grant.ts'

/** Buys new tokens with a refresh token. `session-over` when the auth server no longer gives any for it. */
export async function redeemRefreshToken(
  context: AppContext,
  session: Session,
  refreshToken: string,
): Promise<Result<TokenGrant>> {
  const found = await context.discovery.find(session.fhirBaseUrl)
  if (!found.ok) return found
  // The token goes to the auth server that gave it and to no other, whatever the FHIR server says today.
  if (found.value.issuer !== session.issuer) return fail({ kind: 'session-over' })
  try {
    const client = await oauthClient(context, session.fhirBaseUrl, found.value)
    return granted(readTokenGrant(await refreshTokenGrant(client, refreshToken)), session)
  } catch (error) {
    const problem = oauthProblem(error)
    context.log.warn({ sessionId: session.sessionId, problem: problem.kind }, 'Cannot renew session tokens')
    return fail(failureOf(problem))
  }
}

/** A renewal keeps the patient of the launch: tokens that speak of another one are not used. */
function granted(grant: TokenGrant | undefined, session: Session): Result<TokenGrant> {
  if (!grant || (grant.patientId !== undefined && grant.patientId !== session.patientId))
    return fail({ kind: 'session-over' })
  return succeed(grant)
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
