import type { FastifyRequest } from 'fastify'
import { auditEvent, describeRefusal, describeRefused } from '../../base/audit.ts'
import type { AuthRefusal, KnownParties, ReturnTarget } from '../../base/refusal.ts'
import type { Login } from '../../users/find-login.ts'
import { findCurrentLogin } from '../../users/login.ts'
import type { AuthContext } from '../context.ts'
import { findLaunch } from '../launch/launch-token.ts'
import { resolveLaunchContext } from './authorized-context.ts'
import type { AuthorizationRequest } from './request.ts'
import { consumePendingAuthorization } from './request.ts'

/** Where an authorization request goes next: to a page of ours or back to the client, or it has ended. */
export type AuthorizationStep =
  | { readonly kind: 'redirect'; readonly url: string }
  /** The client cannot get the refusal, so the user sees it. */
  | { readonly kind: 'refused'; readonly refusal: AuthRefusal }
  /** Another user than the one who launched the app signed in on one of our pages. */
  | { readonly kind: 'launched-by-another' }
  /** The user signed in with an account that opens no records. */
  | { readonly kind: 'opens-no-records' }
  /** The request has been completed or has expired, and its client is no longer known. */
  | { readonly kind: 'expired' }

/**
 * Returns to the client, with `iss` against mix-up attacks (RFC 9207). A client may opt out: fhirclient takes an `iss` in the
 * URL for another launch.
 */
export function returnToClient(
  { settings }: AuthContext,
  { redirectUri, state, omitsIss }: ReturnTarget,
  response: Readonly<Record<string, string>>,
): AuthorizationStep {
  const parameters = new URLSearchParams(response)
  if (state !== undefined) parameters.set('state', state)
  if (!omitsIss) parameters.set('iss', settings.issuerUrl)
  const separator = redirectUri.includes('?') ? '&' : '?'
  return { kind: 'redirect', url: `${redirectUri}${separator}${parameters}` }
}

interface RefusedRequest {
  readonly request?: AuthorizationRequest
  readonly login?: Login | undefined
  /** The id of the stored request that ends with the refusal. */
  readonly ends?: string | undefined
}

/** Records a refusal, and returns it to the client if that is allowed. */
export async function recordRefusal(
  http: FastifyRequest,
  context: AuthContext,
  refusal: AuthRefusal,
  about: RefusedRequest = {},
): Promise<AuthorizationStep> {
  const { request, login = await findCurrentLogin(context, http), ends } = about
  http.log.info(
    { error: refusal.error, reason: refusal.reason, detail: refusal.detail },
    'Authorization refused',
  )
  const { clientId, launchId, patientId } = {
    ...refusal.known,
    ...(request && (await findKnown(context, request))),
  }
  const event = {
    kind: 'authorize' as const,
    client: clientId,
    launch: launchId,
    patient: patientId,
    user: login?.user,
    // A request with an issued launch token has a full record, not only a count.
    anonymous: login === undefined && patientId === undefined,
    ...describeRefusal(refusal),
  }
  if (ends === undefined) await auditEvent(context, http, event)
  else {
    const isEnded = await context.store.db.transaction().execute(async trx => {
      if (!(await consumePendingAuthorization(trx, ends))) return false
      await auditEvent(context, http, event, trx)
      return true
    })
    if (!isEnded) return expire(http, context)
  }
  return refusal.returnTo
    ? returnToClient(context, refusal.returnTo, {
        error: refusal.error,
        error_description: refusal.description,
      })
    : { kind: 'refused', refusal }
}

async function findKnown({ store }: AuthContext, request: AuthorizationRequest): Promise<KnownParties> {
  const { clientId, launchId, launchHash, picked } = request
  const launch = launchHash === undefined ? undefined : await findLaunch(store.db, launchHash)
  return { clientId, launchId, patientId: resolveLaunchContext(launch, picked)?.patientId }
}

/** Records that a page was opened whose request has ended. */
export async function expire(http: FastifyRequest, context: AuthContext): Promise<AuthorizationStep> {
  const event = { kind: 'authorize', anonymous: true } as const
  await auditEvent(context, http, { ...event, ...describeRefused('sign-in-ended') })
  return { kind: 'expired' }
}
