import type { FastifyReply } from 'fastify'
import { errorPage } from '../../web/index.ts'
import { auditEvent, refusalEvent } from '../audit.ts'
import type { AuthContext } from '../context.ts'
import { findLaunch } from '../launch/launch-token.ts'
import { currentLogin } from '../login/current-login.ts'
import type { Login } from '../login/login.ts'
import { paths } from '../paths.ts'
import { type Known, type Refusal, type Return, statusOf } from '../refusal.ts'
import { consumeInteraction } from './interaction.ts'
import { openedFor } from './opened-for.ts'
import type { AuthorizationRequest } from './request.ts'

/**
 * Sends the browser back to the client, with `iss` so that it cannot be taken for another server (RFC 9207). An app that
 * keeps the response in its address bar may opt out: to fhirclient, `iss` there is another launch.
 */
export function redirectToClient(
  reply: FastifyReply,
  { settings }: AuthContext,
  { redirectUri, state, omitsIss }: Return,
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
  /** The id of the stored interaction that ends with the refusal. */
  readonly ends?: string | undefined
}

/** A refusal goes to the client if it may be redirected, else to the person in front of the browser. */
export async function sendRefusal(
  reply: FastifyReply,
  context: AuthContext,
  refusal: Refusal,
  about: RefusedRequest = {},
): Promise<FastifyReply> {
  const { request, login = await currentLogin(context, reply.request), ends } = about
  reply.request.log.info({ error: refusal.code, detail: refusal.detail }, 'Authorization refused')
  const { clientId, launchId, patientId } = {
    ...refusal.known,
    ...(request && (await knownOf(context, request))),
  }
  const event = {
    ...({ kind: 'authorize', client: clientId, launch: launchId, patient: patientId } as const),
    clinician: login?.clinician,
    // A request with a launch token that was issued keeps its own record, as with codes.
    anonymous: login === undefined && patientId === undefined,
    ...refusalEvent(refusal),
  }
  if (ends === undefined) await auditEvent(context, reply.request, event)
  else
    await context.store.db.transaction().execute(async trx => {
      await consumeInteraction(trx, ends)
      await auditEvent(context, reply.request, event, trx)
    })
  if (refusal.returnTo)
    return redirectToClient(reply, context, refusal.returnTo, {
      error: refusal.code,
      error_description: refusal.description,
    })
  return reply.sendPage(refusalPage(reply, context, refusal), { status: statusOf(refusal.code) })
}

async function knownOf({ store }: AuthContext, request: AuthorizationRequest): Promise<Known> {
  const { clientId, launchId, launchHash, picked } = request
  const launch = launchHash === undefined ? undefined : await findLaunch(store.db, launchHash)
  return { clientId, launchId, patientId: openedFor(launch, picked)?.patientId }
}

function refusalPage(reply: FastifyReply, { clock }: AuthContext, refusal: Refusal) {
  return errorPage({
    kind: 'refused',
    title: 'The app could not be opened',
    text: [
      'The app sent a request that cannot be answered. No record was opened.',
      'Launch the app again from the patient list. If it happens again, tell whoever looks after the app.',
    ],
    code: refusal.code,
    reason: refusal.description,
    reference: reply.request.id,
    now: clock(),
    actions: [{ href: paths.portal, text: 'Go to patients' }],
  })
}

/** The request was answered before, or its 10 minutes are over. Where it came from is no longer known. */
export function sendOver(reply: FastifyReply, { clock }: AuthContext): FastifyReply {
  const page = errorPage({
    kind: 'refused',
    title: 'This sign-in is over',
    text: [
      'It was already finished, or it waited longer than 10 minutes. No record was opened.',
      'Launch the app again from the patient list.',
    ],
    code: 'invalid_request',
    reference: reply.request.id,
    now: clock(),
    actions: [{ href: paths.portal, text: 'Go to patients' }],
  })
  return reply.sendPage(page, { status: 400 })
}
