import type { FastifyReply } from 'fastify'
import { auditEvent } from '../audit.ts'
import { findClient } from '../client/client.ts'
import { isRegisteredRedirectUri } from '../client/redirect-uri.ts'
import type { AuthContext } from '../context.ts'
import { findLaunch } from '../launch/launch-token.ts'
import { currentLogin } from '../login/current-login.ts'
import type { Login } from '../login/login.ts'
import { paths } from '../paths.ts'
import { Refusal } from '../refusal.ts'
import { storeInteraction } from './interaction.ts'
import { issueCode } from './issue-code.ts'
import { nextStep, type Situation } from './next-step.ts'
import { openedFor } from './opened-for.ts'
import type { AuthorizationRequest } from './request.ts'
import { redirectToClient, sendRefusal } from './respond.ts'
import { choosingOf } from './scope-terms.ts'

/** A request on its way; it has an id once it is stored. */
export interface Under {
  readonly request: AuthorizationRequest
  readonly id?: string
  /** What its user left ticked on the consent page. */
  readonly ticked?: ReadonlySet<string>
}

/** Takes a verified request one step further: to the login page, the picker, the consent page, or back to the client. */
export async function proceed(
  reply: FastifyReply,
  context: AuthContext,
  under: Under,
): Promise<FastifyReply> {
  const situation = await situationOf(reply, context, under)
  if (situation instanceof Refusal) return sendRefusal(reply, context, situation, { request: under.request })
  const step = nextStep(situation)
  switch (step.kind) {
    case 'login':
      return sendToPage(reply, context, under, situation, paths.login)
    case 'pick':
      return sendToPage(reply, context, under, situation, paths.pick)
    case 'consent':
      return sendToPage(reply, context, under, situation, paths.consent)
    case 'refuse':
      return mayReturn(situation)
        ? refuse(reply, context, under, step.refusal, situation.login)
        : end(reply, context, under, step.refusal, situation.login)
    case 'issue-code': {
      const { request, client } = situation
      const approval = { request, client, login: step.login, interactionId: under.id, ticked: under.ticked }
      const event = {
        ...({ kind: 'authorize', status: 302, client: client.id, clinician: step.login.clinician } as const),
        patient: openedFor(situation.launch, request.picked)?.patientId,
        launch: request.launchId,
      }
      const code = await issueCode(context, approval, trx => auditEvent(context, reply.request, event, trx))
      if (code instanceof Refusal) return refuse(reply, context, under, code, step.login)
      return redirectToClient(reply, context, returnOf(request), { code })
    }
  }
}

/**
 * Whether an error may be sent to the client: always to one that an administrator vouches for, otherwise only once its
 * user has decided something on a page that names the client. A login is no such decision.
 */
function mayReturn({ client, request, consented }: Situation): boolean {
  return client.approved || consented || request.picked !== undefined
}

/** Ends a request without a code, and sends the error to the client. */
export function refuse(
  reply: FastifyReply,
  context: AuthContext,
  under: Under,
  refusal: Refusal,
  login: Login | undefined,
): Promise<FastifyReply> {
  return end(reply, context, under, refusal.returningTo(returnOf(under.request)), login)
}

async function end(
  reply: FastifyReply,
  context: AuthContext,
  { request, id }: Under,
  refusal: Refusal,
  login: Login | undefined,
): Promise<FastifyReply> {
  return sendRefusal(reply, context, refusal, { request, login, ends: id })
}

/** What the decision is made from. The client may have been removed since the request was verified. */
export async function situationOf(
  reply: FastifyReply,
  context: AuthContext,
  { request, ticked }: Under,
): Promise<Situation | Refusal> {
  const client = await findClient(context.store, request.clientId)
  if (!client || !isRegisteredRedirectUri(client, request.redirectUri))
    return new Refusal('invalid_request', 'The app is not registered here any more.')
  const { launchHash } = request
  const launch = launchHash === undefined ? undefined : await findLaunch(context.store.db, launchHash)
  return {
    request,
    client,
    launch,
    login: await currentLogin(context, reply.request),
    choosing: launch ? 'nothing' : choosingOf(context.settings, client, request.scope),
    consented: ticked !== undefined,
  }
}

async function sendToPage(
  reply: FastifyReply,
  context: AuthContext,
  { id, request }: Under,
  { login }: Situation,
  path: string,
): Promise<FastifyReply> {
  const address = login ? undefined : reply.request.ip
  const stored = id === undefined ? await storeInteraction(context, request, address) : { id }
  return stored instanceof Refusal
    ? sendRefusal(reply, context, stored, { request, login })
    : reply.redirect(`${path}?interaction=${stored.id}`, 302)
}

function returnOf({ redirectUri, state, omitsIss = false }: AuthorizationRequest) {
  return { redirectUri, state, omitsIss }
}
