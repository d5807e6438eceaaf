import type { FastifyRequest } from 'fastify'
import { isFailure } from '../../../core/index.ts'
import { auditEvent, limitComparisons } from '../../base/audit.ts'
import { createFhirReader } from '../../base/fhir-reader.ts'
import { LIMITS } from '../../base/limits.ts'
import { paths } from '../../base/paths.ts'
import { type AuthRefusal, refuse } from '../../base/refusal.ts'
import { isPatientUser, opensRecords } from '../../base/user.ts'
import { readEncounters } from '../../patients/picked.ts'
import { listFactors } from '../../users/factors/factors.ts'
import type { Login } from '../../users/find-login.ts'
import { findCurrentLogin } from '../../users/login.ts'
import { findOwnRecords } from '../../users/own-records.ts'
import type { ComparedValue } from '../../words/reason.ts'
import { findClient } from '../clients/client.ts'
import { isRegisteredRedirectUri } from '../clients/urls.ts'
import type { AuthContext } from '../context.ts'
import { compareScope } from '../grants/grant-scope.ts'
import { readExtension } from '../hooks.ts'
import { consumeLaunchToken, findLaunch, type Launch } from '../launch/launch-token.ts'
import { choosePicker, type PickerChoice, resolveLaunchContext } from './authorized-context.ts'
import { type AuthorizationState, chooseNextStep } from './choose-step.ts'
import { type GrantedScopes, issueCode } from './issue-code.ts'
import { type AuthorizationStep, recordRefusal, returnToClient } from './refuse.ts'
import type { AuthorizationRequest, PickedContext } from './request.ts'
import { storePendingAuthorization } from './request.ts'

/** An authorization request; it has an id once it is stored. */
export interface RequestInProgress {
  readonly request: AuthorizationRequest
  readonly id?: string
  /** The scopes that its user approved on the consent page. */
  readonly approvedScopes?: ReadonlySet<string>
  /** The client and the launch, if they were just found. */
  readonly found?: Pick<AuthorizationState, 'client' | 'launch'> | undefined
}

/** Takes a verified request to its next step: the login page, the picker, the consent page, or back to the client. */
export async function proceed(
  http: FastifyRequest,
  context: AuthContext,
  progress: RequestInProgress,
): Promise<AuthorizationStep> {
  const state = await loadState(http, context, progress)
  return isFailure(state)
    ? recordRefusal(http, context, state, { request: progress.request })
    : takeNextStep(http, context, progress, state)
}

/** Takes a request whose state was just loaded to its next step. */
export async function takeNextStep(
  http: FastifyRequest,
  context: AuthContext,
  progress: RequestInProgress,
  state: AuthorizationState,
): Promise<AuthorizationStep> {
  const refused = await refuseByExtension(context, state)
  if (refused) return refuseRequest(http, context, progress, refused, state.login)
  const step = chooseNextStep(state)
  switch (step.kind) {
    case 'login':
      return sendToPage(http, context, progress, state, paths.login)
    case 'pick':
      return sendToPage(http, context, progress, state, paths.pick)
    case 'consent':
      return sendToPage(http, context, progress, state, paths.consent)
    case 'refuse':
      if (isOfAccountWithoutRecords(state))
        return explain(http, context, progress, step.refusal, state.login, 'opens-no-records')
      if (progress.id !== undefined && isLaunchedByAnother(state))
        return explain(http, context, progress, step.refusal, state.login, 'launched-by-another')
      return mayRedirectError(state, progress)
        ? refuseRequest(http, context, progress, step.refusal, state.login)
        : recordRefusal(http, context, step.refusal, {
            request: progress.request,
            login: state.login,
            ends: progress.id,
          })
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
        kind: 'authorize' as const,
        status: 302,
        client: client.id,
        user: step.login.user,
        patient: resolveLaunchContext(state.launch, request.picked)?.patientId,
        launch: request.launchId,
      }
      const code = await issueCode(context, approval, (trx, scopes) => {
        const details = describeScopes(request, scopes)
        return auditEvent(context, http, { ...event, details }, trx)
      })
      if (!isFailure(code)) return returnToClient(context, toReturnTarget(request), { code })
      return code.reason === 'approval-outdated'
        ? proceed(http, context, { ...progress, found: undefined })
        : refuseRequest(http, context, progress, code, step.login)
    }
  }
}

function isLaunchedByAnother({ launch, login }: AuthorizationState): boolean {
  return launch !== undefined && login !== undefined && launch.username !== login.user.username
}

/** A request without pages has nobody who reads one. */
function isOfAccountWithoutRecords({ login, request }: AuthorizationState): boolean {
  return login !== undefined && !opensRecords(login.user) && !request.prompts.includes('none')
}

/** The app could only say that it was refused. The user, who signed in with the wrong account, reads why. */
async function explain(
  http: FastifyRequest,
  context: AuthContext,
  { request, id }: RequestInProgress,
  refusal: AuthRefusal,
  login: Login | undefined,
  kind: 'launched-by-another' | 'opens-no-records',
): Promise<AuthorizationStep> {
  const step = await recordRefusal(http, context, refusal, { request, login, ends: id })
  return step.kind === 'refused' ? { kind } : step
}

/** This refusal uses up the launch, as others end it. */
async function refuseByExtension(
  context: AuthContext,
  { request: { launchHash }, launch }: AuthorizationState,
): Promise<AuthRefusal | undefined> {
  const { store, clock } = context
  const refusal = readExtension(context, launch).refuse?.('authorize')
  if (!refusal || launchHash === undefined) return undefined
  return (await consumeLaunchToken(store.db, launchHash, clock())) ? refusal : refuse('launch-used')
}

/**
 * Whether an error may be redirected to the client: always to an approved client, otherwise only after its user has made
 * a decision on a page that names the client (RFC 9700, 4.11.2). A login is not such a decision.
 */
function mayRedirectError(
  { client, consented }: AuthorizationState,
  { request }: RequestInProgress,
): boolean {
  return client.approved || consented || request.picked !== undefined
}

/** Ends a request without a code, and redirects the error to the client. */
export function refuseRequest(
  http: FastifyRequest,
  context: AuthContext,
  progress: RequestInProgress,
  refusal: AuthRefusal,
  login: Login | undefined,
): Promise<AuthorizationStep> {
  const { request, id } = progress
  return recordRefusal(http, context, refusal.withReturnTo(toReturnTarget(request)), {
    request,
    login,
    ends: id,
  })
}

/** The requested scopes beside the granted ones, and why some of them are missing. */
function describeScopes(request: AuthorizationRequest, { scope, grantable, declined }: GrantedScopes) {
  const compared = compareScope(request.scope, scope, 'granted')
  return {
    compared: limitComparisons([compared, ...listMissing(request)]),
    ...(request.scope !== scope && { grantable: keepShort(grantable) }),
    ...(declined.length > 0 && { declined: keepShort(declined.join(' ')) }),
  }
}

/** A part of a list of scopes would be wrong. */
function keepShort(scopes: string): string | undefined {
  return scopes.length <= LIMITS.detailCharacters ? scopes : undefined
}

/** What SMART requires of a request, but this server does without: older apps lack it. */
function listMissing({ state }: { readonly state?: string }): readonly ComparedValue[] {
  if (state !== undefined) return []
  return [{ name: 'state', sent: undefined, expected: ['a new random value'], origin: 'required' }]
}

/** Loads the state of a request. The client may have been removed since the request was verified. */
export async function loadState(
  http: FastifyRequest,
  context: AuthContext,
  { request, approvedScopes, found }: RequestInProgress,
): Promise<AuthorizationState | AuthRefusal> {
  const client = found ? found.client : await findClient(context.store.db, context, request.clientId)
  if (!client || !isRegisteredRedirectUri(client, request.redirectUri))
    return refuse('app-no-longer-registered')
  const launch = found ? found.launch : await findLaunchOf(context, request)
  const { findLogin, skipsConsent = false } = readExtension(context, launch)
  const login = (await findLogin?.(request.arrivedAt)) ?? (await findCurrentLogin(context, http))
  const picker = launch ? 'nothing' : choosePicker(context.settings, { client, ...request }, request.scope)
  const picked = request.picked ?? (login && (await findOnlyChoice(context, login, picker)))
  return {
    request: picked ? { ...request, picked } : request,
    client,
    launch,
    login,
    hasSecondFactor: await knowsSecondFactor(context, request, login),
    picker,
    consented: approvedScopes !== undefined,
    skipsConsent,
  }
}

/** Read only where the answer matters. */
async function knowsSecondFactor(
  { store }: AuthContext,
  { acrValues }: AuthorizationRequest,
  login: Login | undefined,
): Promise<boolean> {
  if (acrValues === undefined || !login) return false
  return (await listFactors(store.db, login.user.id)).length > 0
}

async function findLaunchOf(
  { store }: AuthContext,
  { launchHash }: AuthorizationRequest,
): Promise<Launch | undefined> {
  return launchHash === undefined ? undefined : findLaunch(store.db, launchHash)
}

/** What the picker would offer a patient user if there is nothing to choose (PATIENTS-2). */
async function findOnlyChoice(
  context: AuthContext,
  { user }: Login,
  picker: PickerChoice,
): Promise<PickedContext | undefined> {
  if (picker === 'nothing' || !isPatientUser(user)) return undefined
  const records = await findOwnRecords(context, user)
  const only = isFailure(records) || records.length > 1 ? undefined : records[0]
  const picked = only && { userId: user.id, patientId: only.patientId, fhirUserId: only.fhirUserId }
  if (!picked || picker === 'patient') return picked
  const read = await createFhirReader(context, user, { purpose: 'patient-choice' })
  const { fhirBaseUrl } = context.settings
  const encounters = await readEncounters(read, picked.patientId, { fhirBaseUrl })
  if (isFailure(encounters) || (encounters.total ?? Infinity) > 1) return undefined
  const [encounter] = encounters.listed
  return encounter ? { ...picked, encounterId: encounter.id } : picked
}

async function sendToPage(
  http: FastifyRequest,
  context: AuthContext,
  { id, request }: RequestInProgress,
  { login }: AuthorizationState,
  path: string,
): Promise<AuthorizationStep> {
  const anonymous = login ? undefined : http
  const stored = id === undefined ? await storePendingAuthorization(context, request, anonymous) : { id }
  return isFailure(stored)
    ? recordRefusal(http, context, stored, { request, login })
    : { kind: 'redirect', url: `${path}?interaction=${stored.id}` }
}

function toReturnTarget({ redirectUri, state, omitsIss = false }: AuthorizationRequest) {
  return { redirectUri, state, omitsIss }
}
