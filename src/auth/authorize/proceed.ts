import type { FastifyReply } from 'fastify'
import { auditEvent } from '../audit.ts'
import { findClient } from '../client/client.ts'
import { isRegisteredRedirectUri } from '../client/urls.ts'
import { findOwnPatient } from '../clinician/clinician.ts'
import type { AuthContext } from '../context.ts'
import { simulateRefusal } from '../lab/settings.ts'
import { consumeLaunchToken, findLaunch, type Launch, refuseLaunch } from '../launch/launch-token.ts'
import type { Login } from '../login/login.ts'
import { findCurrentLogin, findLoginByHash } from '../login/login.ts'
import { paths } from '../paths.ts'
import { Refusal } from '../refusal.ts'
import { issueCode } from './issue-code.ts'
import { choosePicker, resolveLaunchContext } from './launch-context.ts'
import { type AuthorizationState, chooseNextStep } from './next-step.ts'
import { storePendingAuthorization, storePickedContext } from './pending-authorization.ts'
import type { AuthorizationRequest } from './request.ts'
import { redirectToClient, sendRefusal } from './respond.ts'

/** An authorization request; it has an id once it is stored. */
export interface RequestInProgress {
  readonly request: AuthorizationRequest
  readonly id?: string
  /** The scopes that its user approved on the consent page. */
  readonly approvedScopes?: ReadonlySet<string>
}

/** Takes a verified request to its next step: the login page, the picker, the consent page, or back to the client. */
export async function proceed(
  reply: FastifyReply,
  context: AuthContext,
  progress: RequestInProgress,
): Promise<FastifyReply> {
  const state = await loadState(reply, context, progress)
  if (state instanceof Refusal) return sendRefusal(reply, context, state, { request: progress.request })
  const simulated = await simulateError(context, state)
  if (simulated) return refuseRequest(reply, context, progress, simulated, state.login)
  const step = chooseNextStep(state)
  switch (step.kind) {
    case 'login':
      return sendToPage(reply, context, progress, state, paths.login)
    case 'pick': {
      const own = state.picker === 'patient' && state.login && findOwnPatient(state.login.clinician)
      return own
        ? proceed(reply, context, await pickOwn(context, progress, state.login.clinician.id, own))
        : sendToPage(reply, context, progress, state, paths.pick)
    }
    case 'consent':
      return sendToPage(reply, context, progress, state, paths.consent)
    case 'refuse':
      return mayRedirectError(state)
        ? refuseRequest(reply, context, progress, step.refusal, state.login)
        : endRequest(reply, context, progress, step.refusal, state.login)
    case 'issue-code': {
      const { request, client } = state
      const approval = {
        request,
        client,
        login: step.login,
        pendingId: progress.id,
        approvedScopes: progress.approvedScopes,
      }
      const event = {
        ...({ kind: 'authorize', status: 302, client: client.id, clinician: step.login.clinician } as const),
        patient: resolveLaunchContext(state.launch, request.picked)?.patientId,
        launch: request.launchId,
      }
      const code = await issueCode(context, approval, trx => auditEvent(context, reply.request, event, trx))
      if (code instanceof Refusal) return refuseRequest(reply, context, progress, code, step.login)
      return redirectToClient(reply, context, toReturnTarget(request), { code })
    }
  }
}

/** A patient who signs in opens their own record, without a picker (PATIENTS-2). */
async function pickOwn(
  { store }: AuthContext,
  progress: RequestInProgress,
  clinicianId: string,
  patientId: string,
): Promise<RequestInProgress> {
  const { id, request } = progress
  const picked = { clinicianId, patientId }
  if (id === undefined) return { ...progress, request: { ...request, picked } }
  return { ...progress, ...(await storePickedContext(store, { id, request }, picked)) }
}

/** A simulated error uses up the launch, as a real one ends it. */
async function simulateError(
  { store, clock }: AuthContext,
  { request: { launchHash }, launch }: AuthorizationState,
): Promise<Refusal | undefined> {
  const refusal = simulateRefusal(launch?.lab, 'authorize')
  if (!refusal || launchHash === undefined) return undefined
  return (await consumeLaunchToken(store.db, launchHash, clock())) ? refusal : refuseLaunch('used')
}

/**
 * Whether an error may be redirected to the client: always to an approved client, otherwise only after its user has made
 * a decision on a page that names the client (RFC 9700, 4.11.2). A login is not such a decision.
 */
function mayRedirectError({ client, request, consented, login }: AuthorizationState): boolean {
  const hasPicked = request.picked !== undefined && !(login && findOwnPatient(login.clinician))
  return client.approved || consented || hasPicked
}

/** Ends a request without a code, and redirects the error to the client. */
export function refuseRequest(
  reply: FastifyReply,
  context: AuthContext,
  progress: RequestInProgress,
  refusal: Refusal,
  login: Login | undefined,
): Promise<FastifyReply> {
  return endRequest(reply, context, progress, refusal.withReturnTo(toReturnTarget(progress.request)), login)
}

async function endRequest(
  reply: FastifyReply,
  context: AuthContext,
  { request, id }: RequestInProgress,
  refusal: Refusal,
  login: Login | undefined,
): Promise<FastifyReply> {
  return sendRefusal(reply, context, refusal, { request, login, ends: id })
}

/** Loads the state of a request. The client may have been removed since the request was verified. */
export async function loadState(
  reply: FastifyReply,
  context: AuthContext,
  { request, approvedScopes }: RequestInProgress,
): Promise<AuthorizationState | Refusal> {
  const client = await findClient(context.store, request.clientId)
  if (!client || !isRegisteredRedirectUri(client, request.redirectUri))
    return new Refusal('invalid_request', 'The app is no longer registered.')
  const { launchHash } = request
  const launch = launchHash === undefined ? undefined : await findLaunch(context.store.db, launchHash)
  return {
    request,
    client,
    launch,
    login: (await findLabLogin(context, launch, request)) ?? (await findCurrentLogin(context, reply.request)),
    picker: launch ? 'nothing' : choosePicker(context.settings, client, request.scope),
    consented: approvedScopes !== undefined,
  }
}

/** A lab launch without a sign-in has a login of its own, as if its user had just signed in. */
async function findLabLogin(
  { settings, store, clock }: AuthContext,
  launch: Launch | undefined,
  { arrivedAt }: AuthorizationRequest,
): Promise<Login | undefined> {
  const { loginHash } = launch?.lab ?? {}
  if (!settings.lab || loginHash === undefined) return undefined
  const login = await findLoginByHash(store, loginHash, clock())
  return login && { ...login, createdAt: arrivedAt, authTime: arrivedAt }
}

async function sendToPage(
  reply: FastifyReply,
  context: AuthContext,
  { id, request }: RequestInProgress,
  { login }: AuthorizationState,
  path: string,
): Promise<FastifyReply> {
  const ip = login ? undefined : reply.request.ip
  const stored = id === undefined ? await storePendingAuthorization(context, request, ip) : { id }
  return stored instanceof Refusal
    ? sendRefusal(reply, context, stored, { request, login })
    : reply.redirect(`${path}?interaction=${stored.id}`, 302)
}

function toReturnTarget({ redirectUri, state, omitsIss = false }: AuthorizationRequest) {
  return { redirectUri, state, omitsIss }
}
