import type { FastifyReply } from 'fastify'
import { renderErrorPage } from '../../../web/index.ts'
import { auditEvent, describeRefusal } from '../../base/audit.ts'
import type { AuthContext } from '../../base/context.ts'
import { paths } from '../../base/paths.ts'
import { getStatus, type KnownParties, type Refusal, type ReturnTarget } from '../../base/refusal.ts'
import { linkReference } from '../../pages/activity/view.ts'
import type { Login } from '../../users/find-login.ts'
import { findCurrentLogin } from '../../users/login.ts'
import { findLaunch } from '../launch/launch-token.ts'
import { resolveLaunchContext } from './launch-context.ts'
import type { AuthorizationRequest } from './request.ts'
import { consumePendingAuthorization } from './request.ts'

/**
 * Redirects the browser to the client, with `iss` against mix-up attacks (RFC 9207). A client may opt out: fhirclient
 * takes an `iss` in the URL for another launch.
 */
export function redirectToClient(
  reply: FastifyReply,
  { settings }: AuthContext,
  { redirectUri, state, omitsIss }: ReturnTarget,
  response: Readonly<Record<string, string>>,
): FastifyReply {
  const parameters = new URLSearchParams(response)
  if (state !== undefined) parameters.set('state', state)
  if (!omitsIss) parameters.set('iss', settings.issuerUrl)
  const separator = redirectUri.includes('?') ? '&' : '?'
  return reply.redirect(`${redirectUri}${separator}${parameters}`, 302)
}

interface RefusedRequest {
  readonly request?: AuthorizationRequest
  readonly login?: Login | undefined
  /** The id of the stored request that ends with the refusal. */
  readonly ends?: string | undefined
}

/** Redirects a refusal to the client if that is allowed, and otherwise shows it to the user. */
export async function sendRefusal(
  reply: FastifyReply,
  context: AuthContext,
  refusal: Refusal,
  about: RefusedRequest = {},
): Promise<FastifyReply> {
  const { request, login = await findCurrentLogin(context, reply.request), ends } = about
  reply.request.log.info({ error: refusal.code, detail: refusal.detail }, 'Authorization refused')
  const { clientId, launchId, patientId } = {
    ...refusal.known,
    ...(request && (await findKnown(context, request))),
  }
  const event = {
    ...({ kind: 'authorize', client: clientId, launch: launchId, patient: patientId } as const),
    clinician: login?.clinician,
    // A request with an issued launch token has a full record, not only a count.
    anonymous: login === undefined && patientId === undefined,
    ...describeRefusal(refusal),
  }
  if (ends === undefined) await auditEvent(context, reply.request, event)
  else {
    const isEnded = await context.store.db.transaction().execute(async trx => {
      if (!(await consumePendingAuthorization(trx, ends))) return false
      await auditEvent(context, reply.request, event, trx)
      return true
    })
    if (!isEnded) return sendExpired(reply, context)
  }
  if (refusal.returnTo)
    return redirectToClient(reply, context, refusal.returnTo, {
      error: refusal.code,
      error_description: refusal.description,
    })
  return reply.sendPage(renderRefusalPage(reply, context, refusal), { status: getStatus(refusal.code) })
}

async function findKnown({ store }: AuthContext, request: AuthorizationRequest): Promise<KnownParties> {
  const { clientId, launchId, launchHash, picked } = request
  const launch = launchHash === undefined ? undefined : await findLaunch(store.db, launchHash)
  return { clientId, launchId, patientId: resolveLaunchContext(launch, picked)?.patientId }
}

function renderRefusalPage(reply: FastifyReply, context: AuthContext, refusal: Refusal) {
  const { id } = reply.request
  return renderErrorPage({
    kind: 'refused',
    title: 'The app could not be opened',
    text: [
      'The app sent an invalid request. No record was opened.',
      'Open the app again. If the problem persists, contact the app’s administrator.',
    ],
    code: refusal.code,
    reason: refusal.description,
    reference: id,
    referenceUrl: linkReference(context, id),
    now: context.clock(),
    actions: [{ href: paths.portal, text: 'Go to the start page' }],
  })
}

/** The request has been completed or has expired, and its client is no longer known. */
export async function sendExpired(reply: FastifyReply, context: AuthContext): Promise<FastifyReply> {
  const { id } = reply.request
  const reason = 'The sign-in was already completed, or it took longer than 10 minutes'
  const event = { kind: 'authorize', allowed: false, status: 400, anonymous: true } as const
  await auditEvent(context, reply.request, { ...event, reason })
  const page = renderErrorPage({
    kind: 'ended',
    title: 'This sign-in has ended',
    text: [
      'It was already completed, or it took longer than 10 minutes. No record was opened.',
      'Open the app again, from the patient list or from the app itself.',
    ],
    code: 'invalid_request',
    reference: id,
    referenceUrl: linkReference(context, id),
    now: context.clock(),
    actions: [{ href: paths.portal, text: 'Go to the start page' }],
  })
  return reply.sendPage(page, { status: 400 })
}
