import type { FastifyInstance, FastifyReply } from 'fastify'
import { type Person, personOf } from '../../web/index.ts'
import type { Interaction } from '../authorize/interaction.ts'
import { nextStep, type Situation } from '../authorize/next-step.ts'
import { proceed, refuse, situationOf } from '../authorize/proceed.ts'
import { sendRefusal } from '../authorize/respond.ts'
import { interactionOf, sendOver } from '../authorize/routes.ts'
import { scopeTerms } from '../authorize/scope-terms.ts'
import type { AuthContext } from '../context.ts'
import { grantScope } from '../grant/grant-scope.ts'
import type { Login } from '../login/login.ts'
import { readParameters } from '../parameters.ts'
import { paths } from '../paths.ts'
import { fhirReader } from '../portal/fhir-reader.ts'
import { showsSampleData } from '../portal/sample-data.ts'
import { Refusal } from '../refusal.ts'
import { consentPage } from './page.ts'

/** The page on which a clinician allows or refuses an app that is not ours. */
export function consentRoutes(app: FastifyInstance, context: AuthContext): void {
  app.get(paths.consent, async (request, reply) => {
    const interaction = await interactionOf(context, readParameters(request.query).get('interaction'))
    return interaction ? ask(reply, context, interaction) : sendOver(request, reply, context)
  })

  app.post(paths.consent, async (request, reply) => {
    const form = readParameters(request.body)
    const interaction = await interactionOf(context, form.get('interaction'))
    if (!interaction) return sendOver(request, reply, context)
    const situation = await situationOf(reply, context, interaction)
    if (situation instanceof Refusal) return sendRefusal(reply, context, situation)
    // Whoever reads the page decides: after a change of user it is shown again.
    if (form.get('clinician') !== situation.login?.clinician.id) return ask(reply, context, interaction)
    switch (form.get('decision')) {
      case 'allow':
        return proceed(reply, context, { ...interaction, consented: true })
      case 'deny':
        return refuse(reply, context, interaction, new Refusal('access_denied', 'The user did not allow it.'))
      default:
        return ask(reply, context, interaction)
    }
  })
}

/** Shows the page, if asking is what comes next. */
async function ask(
  reply: FastifyReply,
  context: AuthContext,
  interaction: Interaction,
): Promise<FastifyReply> {
  const situation = await situationOf(reply, context, interaction)
  if (situation instanceof Refusal) return sendRefusal(reply, context, situation)
  const { login } = situation
  if (!login || nextStep(situation).kind !== 'consent') return proceed(reply, context, interaction)
  const { client, request } = situation
  const page = consentPage({
    client,
    login,
    interactionId: interaction.id,
    scope: wouldGrant(context, situation),
    redirectUri: request.redirectUri,
    sampleData: showsSampleData(context.settings),
    patient: await patientOf(context, login, situation),
    now: context.clock(),
  })
  return reply.sendPage(page, { formTargets: [request.redirectUri] })
}

/** Whose record it is about. Where that cannot be read now, the page says so by leaving it out. */
async function patientOf(
  context: AuthContext,
  { clinician }: Login,
  { launch }: Situation,
): Promise<Person | undefined> {
  if (!launch) return undefined
  const read = await fhirReader(context, clinician)
  const answer = await read(`Patient/${launch.patientId}`)
  return answer.kind === 'found' ? personOf(answer.resource) : undefined
}

function wouldGrant({ settings }: AuthContext, { request, client, launch }: Situation): string {
  return grantScope(request.scope, scopeTerms(settings, client, launch))
}
