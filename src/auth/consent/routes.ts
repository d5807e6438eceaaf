import type { FastifyInstance, FastifyReply } from 'fastify'
import { personOf } from '../../web/index.ts'
import { ACTS } from '../authorize/acts.ts'
import type { Situation } from '../authorize/next-step.ts'
import { openedFor, openingOf } from '../authorize/opened-for.ts'
import { proceed, refuse } from '../authorize/proceed.ts'
import { scopeTerms } from '../authorize/scope-terms.ts'
import { sendElsewhere, type Waiting, waitingFor } from '../authorize/waiting.ts'
import type { AuthContext } from '../context.ts'
import { grantScope } from '../grant/grant-scope.ts'
import type { Login } from '../login/login.ts'
import { type Parameters, readParameters } from '../parameters.ts'
import { paths } from '../paths.ts'
import { logosOf } from '../portal/app-identity.ts'
import { fhirReader } from '../portal/fhir-reader.ts'
import { showsSampleData } from '../portal/sample-data.ts'
import { Refusal } from '../refusal.ts'
import { consentPage } from './page.ts'
import type { Ticked } from './rows-html.ts'

const AS_ASKED: Ticked = () => true
const DENIED = new Refusal('access_denied', 'The user did not allow it.')

/** The page on which a clinician allows or refuses an app that is not ours. */
export function consentRoutes(app: FastifyInstance, context: AuthContext): void {
  app.get(paths.consent, ACTS, async (request, reply) => {
    const waiting = await waitingFor(reply, context, readParameters(request.query), ['consent'])
    return waiting.kind === 'waiting'
      ? ask(reply, context, waiting, AS_ASKED)
      : sendElsewhere(reply, context, waiting)
  })

  // What was decided counts also for an app that has become ours while the page was open.
  app.post(paths.consent, async (request, reply) => {
    const form = readParameters(request.body)
    const waiting = await waitingFor(reply, context, form, ['consent', 'issue-code'])
    if (waiting.kind !== 'waiting') return sendElsewhere(reply, context, waiting)
    if (!isAboutTheSame(form, waiting)) return ask(reply, context, waiting, AS_ASKED)
    const { interaction, login } = waiting
    const ticked = tickedOf(request.body)
    switch (form.get('decision')) {
      case 'allow':
        return proceed(reply, context, { ...interaction, ticked })
      case 'deny':
        return refuse(reply, context, interaction, DENIED, login)
      default:
        return ask(reply, context, waiting, scope => ticked.has(scope))
    }
  })
}

/** What was read decides: after a change of user, patient or encounter the page is shown again. */
function isAboutTheSame(form: Parameters, { login, situation }: Waiting): boolean {
  const opened = openedFor(situation.launch, situation.request.picked)
  return (
    form.get('clinician') === login.clinician.id &&
    form.get('patient') === opened?.patientId &&
    form.get('encounter') === opened?.encounterId
  )
}

/** Every ticked box. */
function tickedOf(body: unknown): ReadonlySet<string> {
  const scope: unknown = typeof body === 'object' && body !== null && 'scope' in body ? body.scope : []
  return new Set([scope].flat().filter(value => typeof value === 'string'))
}

async function ask(
  reply: FastifyReply,
  context: AuthContext,
  { interaction, situation, login }: Waiting,
  ticked: Ticked,
): Promise<FastifyReply> {
  const { client, request } = situation
  const { settings, clock } = context
  const patient = await patientOf(context, login, situation)
  const page = consentPage({
    client,
    login,
    interactionId: interaction.id,
    ...grantable(context, situation),
    redirectUri: request.redirectUri,
    sampleData: showsSampleData(settings, patient?.person ? [patient.person] : []),
    patient,
    encounterId: openedFor(situation.launch, request.picked)?.encounterId,
    searchPermission: settings.fhir.searchPermission,
    accessTokenTtlSeconds: settings.accessTokenTtlSeconds,
    picked: request.picked !== undefined,
    ticked,
    now: clock(),
  })
  return reply.sendPage(page, { formTargets: [request.redirectUri], images: logosOf(client) })
}

/** Whose record it is about. Where that cannot be read now, the page says so. */
async function patientOf(context: AuthContext, { clinician }: Login, { launch, request }: Situation) {
  const id = openedFor(launch, request.picked)?.patientId
  if (id === undefined) return undefined
  const read = await fhirReader(context, clinician)
  const answer = await read(`Patient/${id}`)
  return { id, person: answer.kind === 'found' ? personOf(answer.resource) : undefined }
}

function grantable({ settings }: AuthContext, { request, client, launch }: Situation) {
  const terms = scopeTerms(settings, client, openingOf(openedFor(launch, request.picked)))
  return {
    scope: grantScope(request.scope, terms),
    wanted: grantScope(request.scope, { ...terms, allowed: request.scope }),
  }
}
