import type { FastifyInstance, FastifyReply } from 'fastify'
import { DAY_MS } from '../../../core/index.ts'
import { readPerson } from '../../../web/person/index.ts'
import { createFhirReader } from '../../base/fhir-reader.ts'
import { NO_HEAD_ROUTE, paths } from '../../base/paths.ts'
import { refuse } from '../../base/refusal.ts'
import type { Parameters } from '../../base/request.ts'
import { isPatientUser } from '../../base/user.ts'
import {
  describeAvailableContext,
  makeScopeTerms,
  resolveLaunchContext,
} from '../../oauth/authorize/authorized-context.ts'
import type { AuthorizationState } from '../../oauth/authorize/choose-step.ts'
import { applyApproval, listConsentItems } from '../../oauth/authorize/consent-items.ts'
import { refuseRequest, takeNextStep } from '../../oauth/authorize/proceed.ts'
import type { Waiting } from '../../oauth/authorize/waiting.ts'
import type { AuthContext } from '../../oauth/context.ts'
import { keepUsableGrants, selectGrants } from '../../oauth/grants/grant.ts'
import { grantScope } from '../../oauth/grants/grant-scope.ts'
import { findNamesakes } from '../../patients/namesakes.ts'
import type { Login } from '../../users/find-login.ts'
import { listOwnPatients } from '../../users/own-records.ts'
import { listLogos } from '../parts/apps.ts'
import { listSignOutScripts, requireWaiting, sendStep } from '../parts/authorize-step.ts'
import { showsSampleData } from '../parts/page-parts.ts'
import { renderConsentPage } from './page.ts'
import type { IsChecked } from './rows.ts'

const DENIED = refuse('consent-denied')

/** The page on which a user allows or refuses access to an app. */
export function addConsentRoutes(app: FastifyInstance, context: AuthContext): void {
  app.get(
    paths.consent,
    NO_HEAD_ROUTE,
    requireWaiting(context, ['consent'], (reply, waiting) => sendConsentPage(reply, context, waiting)),
  )

  // The decision also counts if the client became first-party while the page was open.
  app.post(
    paths.consent,
    requireWaiting(context, ['consent', 'issue-code'], async (reply, waiting, form) => {
      if (!isSameContext(form, waiting)) return sendConsentPage(reply, context, waiting)
      const { request } = reply
      const { pending, login, state } = waiting
      const approvedScopes = readApprovedScopes(request.body)
      const decided = { ...pending, approvedScopes }
      switch (form.get('decision')) {
        case 'allow':
          if (selectsNothing(context, state, approvedScopes))
            return sendConsentPage(reply, context, waiting, scope => approvedScopes.has(scope), true)
          return sendStep(
            reply,
            context,
            await takeNextStep(request, context, decided, { ...state, consented: true }),
          )
        case 'deny':
          return sendStep(reply, context, await refuseRequest(request, context, pending, DENIED, login))
        default:
          return sendConsentPage(reply, context, waiting, scope => approvedScopes.has(scope))
      }
    }),
  )
}

/** If the user, patient or encounter has changed since the page was shown, it is shown again. */
function isSameContext(form: Parameters, { login, state }: Waiting): boolean {
  const launchContext = resolveLaunchContext(state.launch, state.request.picked)
  return (
    form.get('clinician') === login.user.id &&
    form.get('patient') === launchContext?.patientId &&
    form.get('encounter') === launchContext?.encounterId
  )
}

function readApprovedScopes(body: unknown): ReadonlySet<string> {
  const scope: unknown = typeof body === 'object' && body !== null && 'scope' in body ? body.scope : []
  return new Set([scope].flat().filter(value => typeof value === 'string'))
}

async function sendConsentPage(
  reply: FastifyReply,
  context: AuthContext,
  { pending, state, login }: Waiting,
  isChecked?: IsChecked,
  selectedNothing = false,
): Promise<FastifyReply> {
  const { client, request } = state
  const { settings, clock } = context
  const patient = await findPatient(context, login, state, reply.request.ip)
  const grantable = computeGrantable(context, state)
  const page = renderConsentPage({
    client,
    login,
    pendingId: pending.id,
    ...grantable,
    redirectUri: request.redirectUri,
    brand: context.brand,
    sampleData: showsSampleData(settings, patient?.person ? [patient.person] : []),
    patient,
    encounterId: resolveLaunchContext(state.launch, request.picked)?.encounterId,
    searchPermission: settings.fhir.searchPermission,
    accessTokenTtlSeconds: settings.accessTokenTtlSeconds,
    offlineAccessMaxDays: settings.offlineAccessMaxDays,
    picked: request.picked !== undefined,
    hasChoice: await findWhetherChoice(context, pending, login),
    isChecked: isChecked ?? chooseFirst(login, grantable.scope, request.resource),
    agent:
      request.resource === undefined
        ? undefined
        : { minutes: settings.agents.accessMinutes, may: await findPresentScope(context, state, login) },
    selectedNothing,
    now: clock(),
    scripts: listSignOutScripts(reply.request, context, login),
  })
  return reply.sendPage(page, {
    status: selectedNothing ? 400 : 200,
    formTargets: [request.redirectUri],
    images: listLogos(client),
  })
}

/** The scopes of the access that the assistant already has to the record, for this user. */
async function findPresentScope(
  { store, rules, clock }: AuthContext,
  { client, launch, request }: AuthorizationState,
  { user }: Login,
): Promise<string> {
  const rows = await selectGrants(store.db)
    .where('grant.clinician_id', '=', user.id)
    .where('grant.client_id', '=', client.id)
    .where('grant.resource', 'is not', null)
    .where('grant.patient_id', '=', resolveLaunchContext(launch, request.picked)?.patientId ?? '')
    .where('grant.created_at', '>', clock() - DAY_MS)
    .execute()
  const usable = await keepUsableGrants(store.db, rules, rows, clock())
  return usable.map(({ scope }) => scope).join(' ')
}

/**
 * The boxes that are checked at first (CONSENT-6). Patients and relatives, and everybody for an agent, check themselves what it
 * may change, and whether it keeps access. The parts of such a row are checked: they count only with it.
 */
function chooseFirst({ user }: Login, scope: string, resource: string | undefined): IsChecked {
  if (!isPatientUser(user) && resource === undefined) return () => true
  const writes = new Set(listConsentItems(scope).flatMap(item => (item.writes ? item.scope.text : [])))
  return box => box !== 'offline_access' && !writes.has(box)
}

/** Whether the app requests data, and the user selected none of it. */
function selectsNothing(
  context: AuthContext,
  state: AuthorizationState,
  approvedScopes: ReadonlySet<string>,
): boolean {
  const { scope } = computeGrantable(context, state)
  return (
    listConsentItems(scope).length > 0 && listConsentItems(applyApproval(scope, approvedScopes)).length === 0
  )
}

/** Whether the picker offered several patients. */
async function findWhetherChoice(
  context: AuthContext,
  { request }: Waiting['pending'],
  { user }: Login,
): Promise<boolean> {
  if (request.picked === undefined || !isPatientUser(user)) return request.picked !== undefined
  return (await listOwnPatients(context, user)).length > 1
}

/** Finds the patient of the request. `person` is undefined if the record cannot be read. */
async function findPatient(
  context: AuthContext,
  { user }: Login,
  { launch, request }: AuthorizationState,
  address: string,
) {
  const id = resolveLaunchContext(launch, request.picked)?.patientId
  if (id === undefined) return undefined
  const read = await createFhirReader(context, user, { purpose: 'consent', address })
  const response = await read.resource('Patient', id)
  if (response.kind !== 'found') return { id, person: undefined, alike: [] }
  const person = readPerson(response.resource)
  return { id, person, alike: await findNamesakes(read, person) }
}

function computeGrantable(context: AuthContext, { request, client, launch }: AuthorizationState) {
  const terms = makeScopeTerms(
    context.settings,
    { client, ...request },
    describeAvailableContext(context, resolveLaunchContext(launch, request.picked)),
  )
  return {
    scope: grantScope(request.scope, terms),
    wanted: grantScope(request.scope, { ...terms, allowed: request.scope, atMost: undefined }),
  }
}
