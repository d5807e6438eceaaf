import type { AppContext } from '../context.ts'
import type { OAuthProblem } from '../oauth/errors.ts'
import { type Exchange, exchangeCode, revokeSession, revokeTokens } from '../oauth/token-requests.ts'
import { auditSession } from '../sessions/audit-session.ts'
import { openSession } from '../sessions/session-store.ts'
import { getCallbackUrl } from './begin-launch.ts'
import { type PendingLaunch, takeLaunch } from './pending-launch.ts'
import type { LaunchRefusal } from './refusal.ts'

export interface Callback {
  readonly search: string
  readonly state: string
  readonly launchCookie: string
  readonly sessionCookie: string | undefined
  readonly requestId: string
}

export type FinishedLaunch = { readonly kind: 'opened'; readonly cookie: string } | LaunchRefusal

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
  })
  if (exchange.kind === 'bad-callback') return exchange
  if (exchange.kind !== 'granted') return { kind: 'no-tokens', problem: exchange }
  return startSession(context, launch, exchange, callback)
}

function hasOtherIssuer(expected: string, issuer: string): OAuthProblem {
  const check = `smart-configuration issuer is now ${issuer}, expected ${expected}`
  return { kind: 'unacceptable', code: 'ISSUER_CHANGED', check }
}

async function startSession(
  context: AppContext,
  { fhirBaseUrl, issuer }: PendingLaunch,
  { grant, identity }: Exchange & { readonly kind: 'granted' },
  { sessionCookie, requestId }: Callback,
): Promise<FinishedLaunch> {
  const { patientId } = grant
  if (patientId === undefined) {
    await revokeTokens(context, { fhirBaseUrl, issuer }, grant.tokens)
    return { kind: 'no-patient' }
  }
  const opening = { fhirBaseUrl, issuer, grant, patientId, identity, replaces: sessionCookie }
  const { cookie, replaced } = await context.store.db.transaction().execute(async trx => {
    const session = await openSession(trx, context, opening)
    if (session.replaced) await auditSession(context, session.replaced, REPLACED, trx)
    await auditSession(context, session.opened, { kind: 'session-open', status: 302, requestId }, trx)
    return session
  })
  if (replaced) await revokeSession(context, replaced)
  return { kind: 'opened', cookie }
}

const REPLACED = { kind: 'session-end', status: 302, reason: 'Another launch replaced it' } as const
