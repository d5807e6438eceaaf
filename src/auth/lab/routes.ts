import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { fail, findOwn, isFailure } from '../../core/index.ts'
import { sha256 } from '../../store/index.ts'
import { auditEvent } from '../base/audit.ts'
import { makeFault } from '../base/fault.ts'
import { createFhirReader, type FhirReader } from '../base/fhir-reader.ts'
import { NO_HEAD_ROUTE } from '../base/paths.ts'
import { forbidCaching, joinRepeated, readParameters } from '../base/request.ts'
import { type AuthUser, findOwnPatient, isPatientUser } from '../base/user.ts'
import type { AuthContext } from '../oauth/context.ts'
import { findApp } from '../oauth/launch/apps.ts'
import { buildStandaloneUrl, issueLaunch, prepareLaunch, type ReadyLaunch } from '../oauth/launch/prepare.ts'
import { describeLaunchProblem, nameProblem, UNKNOWN_USER } from '../oauth/launch-context-endpoint.ts'
import { sendErrorPage } from '../pages/parts/page-parts.ts'
import { findPatients, listPeople } from '../patients/patients.ts'
import { findLaunchUser, TEST_CLINICIAN } from '../users/accounts.ts'
import type { Login } from '../users/find-login.ts'
import { beginLogin, findCurrentLogin, requireClinician } from '../users/login.ts'
import { checkLaunch, findPageProblem, type LabProblem } from './access.ts'
import { registerLabClient } from './client.ts'
import { SUGGESTED } from './limits.ts'
import { renderLabPage } from './page.ts'
import { labPaths } from './paths.ts'
import { failLink, isCheck, type LabLink, readLink } from './read-link.ts'
import { describeSimulation, LAUNCHED, type LabSettings } from './settings.ts'
import { loadView } from './view.ts'

/** `GET /lab/launch` launches an app as its parameters say, and `GET /lab` is the page that makes such links. */
export function addLaunchRoutes(app: FastifyInstance, context: AuthContext): void {
  app.get(
    labPaths.lab,
    requireClinician(context, async (request, reply, login) => {
      const problem = findPageProblem(context, request, login)
      if (problem) return sendProblem(reply, context, problem)
      const settings = readPortalForm(request.query)
      if (settings) return reply.redirect(`${labPaths.lab}?${settings}`, 302)
      const page = renderLabPage(context, await loadView(context, login, request.query))
      return reply.sendPage(page)
    }),
  )

  app.get(labPaths.launch, { ...NO_HEAD_ROUTE, onRequest: forbidCaching }, async (request, reply) => {
    const checked = await checkLaunch(context, request)
    if (isFailure(checked)) return sendProblem(reply, context, checked)
    const link = readLink(joinRepeated(request.query, 'scope'))
    // A check launches nothing, and its caller gets the answer: it is no problem of an app.
    const isRecorded = !isCheck(request.query)
    if (isFailure(link)) return sendProblem(reply, context, link, isRecorded)
    const launched = await launch(context, request, checked.login, link)
    if (isFailure(launched)) return sendProblem(reply, context, launched, isRecorded)
    if (link.checks) return reply.code(204).send()
    return link.redirects ? reply.redirect(launched.url, 302) : reply.send({ launch_url: launched.url })
  })
}

/** The settings in the launch form of the portal, if it was sent here. */
function readPortalForm(query: unknown): URLSearchParams | undefined {
  const { get } = readParameters(query)
  if (get('patientId') === undefined) return undefined
  const values = Object.entries(PORTAL_NAMES).flatMap(([name, sent]) => {
    const value = get(sent)
    return value === undefined ? [] : [[name, value]]
  })
  return new URLSearchParams(values)
}

/** The parameters of a link, and the fields of the portal for them. */
const PORTAL_NAMES = {
  client: 'clientId',
  patient: 'patientId',
  encounter: 'encounterId',
  need_patient_banner: 'needPatientBanner',
  intent: 'intent',
  tenant: 'tenant',
  fhir_context: 'fhirContext',
} as const

async function launch(
  context: AuthContext,
  request: FastifyRequest,
  login: Login | undefined,
  link: LabLink,
): Promise<{ readonly url: string } | LabProblem> {
  const { kind, launchUrl } = link
  const { clientId } = link.launch
  if (kind === 'backend') return failLink('kind', makeFault('link-of-backend-service'))
  if (launchUrl !== undefined && clientId !== undefined) {
    const problem = await registerLabClient(context, request, { clientId, launchUrl })
    if (problem) return problem
  }
  return kind === 'standalone' ? startAlone(context, link) : launchForPatient(context, request, login, link)
}

/** The app starts with `iss` alone. Nothing is issued, so that there is nothing to record. */
async function startAlone(
  context: AuthContext,
  link: LabLink,
): Promise<{ readonly url: string } | LabProblem> {
  const { launchUrl, launch } = link
  const { settings } = context
  const app = await findApp(context, launch.clientId)
  if (!app) return describeProblem(fail({ reason: 'launch-app-unknown' }), link)
  const url = launchUrl ?? app.launchUrl
  return { url: buildStandaloneUrl(settings, app.client, url) }
}

async function launchForPatient(
  context: AuthContext,
  request: FastifyRequest,
  login: Login | undefined,
  link: LabLink,
): Promise<{ readonly url: string } | LabProblem> {
  const user = await chooseLaunchUser(context, login, link.username)
  if (!user) return describeProblem(UNKNOWN_USER, link)
  if (link.kind === 'patient' && !isPatientUser(user))
    return failLink('user', makeFault('link-user-not-a-patient'))
  const read = await createFhirReader(context, user, { purpose: 'developer', address: request.ip })
  const patientId = link.launch.patientId ?? findOwnPatient(user)
  const prepared = await prepareLaunch(context, user, read, { ...link.launch, patientId })
  if (isFailure(prepared)) return describeProblem(prepared, link, read)
  if (link.checks) return { url: prepared.launchUrl }
  const ready = await applySettings(context, user, link, prepared)
  const by = login && login.user.id !== user.id ? login.user.username : undefined
  return issueLaunch(context, ready, trx =>
    auditEvent(context, request, { ...describeEvent(ready, link, by), user }, trx),
  )
}

/** A developer who mistyped a name learns which one, and some patients to choose from. */
async function describeProblem(
  problem: Parameters<typeof describeLaunchProblem>[0],
  { launch, username }: LabLink,
  read?: FhirReader,
): Promise<LabProblem> {
  if (problem.reason === 'launch-patient-missing')
    return failLink('patient', makeFault('link-patient-malformed'))
  const names = {
    'launch-user-unknown': username,
    'launch-app-unknown': launch.clientId,
    'launch-patient-unknown': launch.patientId,
    'launch-encounter-unknown': launch.encounterId,
  }
  const name = findOwn(names, problem.reason)
  const { text, ...described } = describeLaunchProblem(problem)
  const named = name === undefined ? text : `${text.replace(/\.$/, '')}: ${name}.`
  const more = problem.reason === 'launch-patient-unknown' && read ? await suggestPatients(read) : ''
  return fail({ ...described, ...nameProblem(problem), text: `${named}${more}` })
}

async function suggestPatients(read: FhirReader): Promise<string> {
  const found = await findPatients(read, { search: undefined, page: undefined, recent: [] })
  const ids = found.kind === 'list' ? listPeople(found).map(({ id }) => id) : []
  return ids.length === 0 ? '' : ` Use, for example, ${ids.slice(0, SUGGESTED).join(', ')}.`
}

/** The named user, or the one who is signed in, or the test clinician. */
function chooseLaunchUser(
  context: AuthContext,
  login: Login | undefined,
  username: string | undefined,
): Promise<AuthUser | undefined> {
  return findLaunchUser(context, username ?? login?.user.username ?? TEST_CLINICIAN.username)
}

async function applySettings(
  context: AuthContext,
  { id }: AuthUser,
  { skipsLogin, launchUrl, settings }: LabLink,
  ready: ReadyLaunch,
): Promise<ReadyLaunch> {
  const login = { userId: id, byTools: {} }
  const loginHash = skipsLogin
    ? sha256(await context.store.db.transaction().execute(trx => beginLogin(context, trx, login)))
    : undefined
  const lab: LabSettings = { ...settings, loginHash }
  const launch = { ...ready.launch, extension: JSON.stringify(lab) }
  return { ...ready, launchUrl: launchUrl ?? ready.launchUrl, launch }
}

/** `by`: the user who is signed in, if the launch is for another one. */
function describeEvent(
  { launch }: ReadyLaunch,
  { redirects, skipsLogin, settings }: LabLink,
  by: string | undefined,
) {
  const { patientId, clientId, id } = launch
  const texts = [
    LAUNCHED,
    by !== undefined && `requested by ${by}`,
    skipsLogin && 'without a sign-in',
    settings.simulate !== undefined && describeSimulation(settings.simulate),
  ]
  return {
    kind: 'launch' as const,
    status: redirects ? 302 : 200,
    patient: patientId,
    client: clientId,
    launch: id,
    reason: texts.filter(text => text).join('; '),
    details: { origin: 'lab', mark: settings.simulate },
  }
}

/** A browser gets a page, a program JSON as of RFC 6749, 5.2. */
async function sendProblem(
  reply: FastifyReply,
  context: AuthContext,
  { status, error, text, reason, facts }: LabProblem,
  isRecorded = true,
): Promise<FastifyReply> {
  const { request } = reply
  const details = { reason, facts }
  const event = { kind: 'launch', allowed: false, status, reason: text, anonymous: true, details } as const
  if (isRecorded) await auditEvent(context, request, event)
  if (!request.headers.accept?.includes('text/html'))
    return reply.code(status).send({ error, error_description: text })
  return sendErrorPage(reply, context, {
    status,
    title: 'The app was not launched',
    text: [text],
    code: error,
    actions: [{ href: labPaths.lab, text: 'Go to the lab' }],
    login: await findCurrentLogin(context, request),
    current: 'developers',
    isRecorded,
  })
}
