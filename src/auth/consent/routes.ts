import type { FastifyInstance, FastifyReply } from 'fastify'
import { personOf } from '../../web/index.ts'
import type { Interaction } from '../authorize/interaction.ts'
import { nextStep, type Situation } from '../authorize/next-step.ts'
import { openedFor, openingOf } from '../authorize/opened-for.ts'
import { proceed, refuse, situationOf } from '../authorize/proceed.ts'
import { sendRefusal } from '../authorize/respond.ts'
import { interactionOf, sendOver } from '../authorize/routes.ts'
import { scopeTerms } from '../authorize/scope-terms.ts'
import type { AuthContext } from '../context.ts'
import { grantScope } from '../grant/grant-scope.ts'
import type { Login } from '../login/login.ts'
import { readParameters } from '../parameters.ts'
import { paths } from '../paths.ts'
import { logosOf } from '../portal/app-identity.ts'
import { fhirReader } from '../portal/fhir-reader.ts'
import { showsSampleData } from '../portal/sample-data.ts'
import { Refusal } from '../refusal.ts'
import { consentPage } from './page.ts'
import type { Ticked } from './rows-html.ts'

const AS_ASKED: Ticked = () => true

/** The page on which a clinician allows or refuses an app that is not ours. */
export function consentRoutes(app: FastifyInstance, context: AuthContext): void {
  app.get(paths.consent, async (request, reply) => {
    const interaction = await interactionOf(context, readParameters(request.query).get('interaction'))
    return interaction ? ask(reply, context, interaction, AS_ASKED) : sendOver(request, reply, context)
  })

  app.post(paths.consent, async (request, reply) => {
    const form = readParameters(request.body)
    const interaction = await interactionOf(context, form.get('interaction'))
    if (!interaction) return sendOver(request, reply, context)
    const situation = await situationOf(reply, context, interaction)
    if (situation instanceof Refusal) return sendRefusal(reply, context, situation)
    const { login, launch } = situation
    // What was read decides: after a change of user or patient the page is shown again.
    const patientId = openedFor(launch, interaction.request.picked)?.patientId
    if (form.get('clinician') !== login?.clinician.id || form.get('patient') !== patientId)
      return ask(reply, context, interaction, AS_ASKED)
    const ticked = tickedOf(request.body)
    switch (form.get('decision')) {
      case 'allow':
        return proceed(reply, context, { ...interaction, ticked })
      case 'deny':
        return refuse(reply, context, interaction, new Refusal('access_denied', 'The user did not allow it.'))
      default:
        return ask(reply, context, interaction, scope => ticked.has(scope))
    }
  })
}

/** Every ticked box. */
function tickedOf(body: unknown): ReadonlySet<string> {
  const scope: unknown = typeof body === 'object' && body !== null && 'scope' in body ? body.scope : []
  return new Set([scope].flat().filter(value => typeof value === 'string'))
}

/** Shows the page, if asking is what comes next. */
async function ask(
  reply: FastifyReply,
  context: AuthContext,
  interaction: Interaction,
  ticked: Ticked,
): Promise<FastifyReply> {
  const situation = await situationOf(reply, context, interaction)
  if (situation instanceof Refusal) return sendRefusal(reply, context, situation)
  const { login, client, request } = situation
  if (!login || nextStep(situation).kind !== 'consent') return proceed(reply, context, interaction)
  const { settings, clock } = context
  const page = consentPage({
    client,
    login,
    interactionId: interaction.id,
    scope: grantable(context, situation),
    redirectUri: request.redirectUri,
    sampleData: showsSampleData(settings),
    patient: await patientOf(context, login, situation),
    searchLetter: settings.fhir.searchLetter,
    accessTokenTtlSeconds: settings.accessTokenTtlSeconds,
    picked: request.picked !== undefined,
    ticked,
    now: clock(),
  })
  return reply.sendPage(page, { formTargets: [request.redirectUri], images: logosOf([client]) })
}

/** Whose record it is about. Where that cannot be read now, the page says so. */
async function patientOf(context: AuthContext, { clinician }: Login, { launch, request }: Situation) {
  const id = openedFor(launch, request.picked)?.patientId
  if (id === undefined) return undefined
  const read = await fhirReader(context, clinician)
  const answer = await read(`Patient/${id}`)
  return { id, person: answer.kind === 'found' ? personOf(answer.resource) : undefined }
}

function grantable({ settings }: AuthContext, { request, client, launch }: Situation): string {
  const opening = openingOf(openedFor(launch, request.picked))
  return grantScope(request.scope, scopeTerms(settings, client, opening))
}
