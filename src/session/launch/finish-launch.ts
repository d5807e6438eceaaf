import type { AppContext } from '../context.ts'
import { SESSIONS_PER_BROWSER } from '../limits.ts'
import type { OAuthProblem } from '../oauth/client.ts'
import { type Exchange, exchangeCode, revokeSession, revokeTokens } from '../oauth/token-requests.ts'
import type { SessionCookie } from '../sessions/find-session.ts'
import { auditSession, type NewSession, type OpenedSession, openSession } from '../sessions/session-store.ts'
import { getCallbackUrl } from './begin-launch.ts'
import { type LaunchParameters, needsPage } from './frame.ts'
import { type PendingLaunch, takeLaunch } from './pending-launch.ts'
import type { LaunchRefusal } from './refusal.ts'

interface Callback {
  readonly search: string
  readonly state: string
  readonly launchCookie: string
  readonly held: readonly SessionCookie[]
  readonly requestId: string
}

type FinishedLaunch =
  | ({ readonly kind: 'opened' } & OpenedSession)
  /** The auth server must show a page, which is never shown in a frame. */
  | { readonly kind: 'needs-window'; readonly parameters: LaunchParameters }
  | LaunchRefusal

/** The callback of a launch: exchanges the code and opens the session. */
export async function finishLaunch(context: AppContext, callback: Callback): Promise<FinishedLaunch> {
  const launch = await takeLaunch(context, callback.state, callback.launchCookie)
  if (!launch)
    return {
      kind: 'unknown-state',
      check:
        callback.launchCookie === ''
          ? 'the browser sent no cookie of this launch'
          : 'the launch is unknown, already finished, or expired',
    }
  const found = await context.discovery.find(launch.fhirBaseUrl)
  if (!found.ok) return { kind: 'no-discovery', failure: found.failure }
  // The app sends the code only to the auth server that it started the launch with (RFC 9207, mix-up).
  if (found.value.issuer !== launch.issuer)
    return { kind: 'no-tokens', problem: hasOtherIssuer(launch.issuer, found.value.issuer) }
  const exchange = await exchangeCode(context, {
    fhirBaseUrl: launch.fhirBaseUrl,
    metadata: found.value,
    callbackUrl: new URL(getCallbackUrl(context) + callback.search),
    state: callback.state,
    nonce: launch.nonce,
    codeVerifier: launch.codeVerifier,
    requestId: callback.requestId,
  })
  if (exchange.kind === 'bad-callback') return exchange
  if (exchange.kind === 'refused' && launch.framedLaunch !== undefined && needsPage(exchange.error))
    return { kind: 'needs-window', parameters: toParameters(launch, launch.framedLaunch) }
  if (exchange.kind !== 'granted') return { kind: 'no-tokens', problem: exchange }
  return startSession(context, launch, exchange, callback)
}

function toParameters({ fhirBaseUrl }: PendingLaunch, launch: string): LaunchParameters {
  return launch === '' ? {} : { iss: fhirBaseUrl, launch }
}

function hasOtherIssuer(expected: string, issuer: string): OAuthProblem {
  const check = `smart-configuration issuer is now ${issuer}, expected ${expected}`
  return { kind: 'unacceptable', code: 'ISSUER_CHANGED', check }
}

async function startSession(
  context: AppContext,
  { fhirBaseUrl, issuer }: PendingLaunch,
  { grant, identity }: Exchange & { readonly kind: 'granted' },
  { held, requestId }: Callback,
): Promise<FinishedLaunch> {
  const { patientId } = grant
  if (patientId === undefined) {
    await revokeTokens(context, { fhirBaseUrl, issuer }, grant.tokens)
    return { kind: 'no-patient' }
  }
  const opening = { fhirBaseUrl, issuer, grant, patientId, identity, held }
  const session = await storeSession(context, opening, requestId).catch(async error => {
    await revokeTokens(context, { fhirBaseUrl, issuer }, grant.tokens)
    throw error
  })
  for (const oldest of session.ended) await revokeSession(context, oldest)
  return { kind: 'opened', ...session }
}

function storeSession(context: AppContext, opening: NewSession, requestId: string): Promise<OpenedSession> {
  return context.store.db.transaction().execute(async trx => {
    const session = await openSession(trx, context, opening)
    for (const oldest of session.ended) await auditSession(context, oldest, TOO_MANY_SESSIONS, trx)
    await auditSession(context, session.opened, { kind: 'session-open', status: 302, requestId }, trx)
    return session
  })
}

const TOO_MANY_SESSIONS = {
  kind: 'session-end',
  status: 302,
  reason: `The browser opened more than ${SESSIONS_PER_BROWSER} sessions`,
} as const
