import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { parseScopes } from '../../smart/index.ts'
import { errorPage, type Person } from '../../web/index.ts'
import { ACTS } from '../authorize/acts.ts'
import { type Interaction, keepPicked } from '../authorize/interaction.ts'
import { proceed, refuse } from '../authorize/proceed.ts'
import { sendElsewhere, type Waiting, waitingFor } from '../authorize/waiting.ts'
import type { AuthContext } from '../context.ts'
import { checkSubject } from '../launch/prepare.ts'
import { type Parameters, readParameters } from '../parameters.ts'
import { paths } from '../paths.ts'
import { sendAway } from '../portal/away.ts'
import { fhirReader } from '../portal/fhir-reader.ts'
import { type Away, findPatients, findSearchFault } from '../portal/patients.ts'
import { readPicked } from '../portal/picked.ts'
import { showsSampleData } from '../portal/sample-data.ts'
import { Refusal } from '../refusal.ts'
import { encounterPage, type PickerOptions, patientPage, pickAddress } from './page.ts'

const NOBODY_CHOSEN = new Refusal('access_denied', 'The user chose no patient.')

/**
 * The picker of a standalone launch (`launch/patient`, `launch/encounter`): after the login, before consent. Whoever
 * leaves without a choice has refused.
 */
export function pickerRoutes(app: FastifyInstance, context: AuthContext): void {
  app.get(paths.pick, ACTS, async (request, reply) => {
    const query = readParameters(request.query)
    const waiting = await waitingFor(reply, context, query, ['pick'])
    if (waiting.kind !== 'waiting') return sendElsewhere(reply, context, waiting)
    const search = query.get('search')?.trim() || undefined
    const fault = findSearchFault(search)
    if (fault !== undefined) return reply.sendProblem({ kind: 'malformed', text: fault })
    const patient = query.get('patient')
    return patient !== undefined && waiting.situation.choosing === 'encounter'
      ? showEncounters(reply, context, waiting, patient)
      : showPatients(reply, context, waiting, { search })
  })

  app.post(paths.pick, async (request, reply) => {
    const form = readParameters(request.body)
    const waiting = await waitingFor(reply, context, form, ['pick'])
    if (waiting.kind !== 'waiting') return sendElsewhere(reply, context, waiting)
    if (form.get('cancel') !== undefined)
      return refuse(reply, context, waiting.interaction, NOBODY_CHOSEN, waiting.login)
    // Whoever sees the list chooses: after a change of user it is shown again.
    const isSame = form.get('clinician') === waiting.login.clinician.id
    const patientId = isSame && !form.unreadable.has('patientId') ? form.get('patientId') : undefined
    if (patientId === undefined) return showPatients(reply, context, waiting, { again: isSame })
    return pick(request, reply, context, waiting, { patientId, form })
  })
}

async function pick(
  request: FastifyRequest,
  reply: FastifyReply,
  context: AuthContext,
  waiting: Waiting,
  { patientId, form }: { readonly patientId: string; readonly form: Parameters },
): Promise<FastifyReply> {
  const { interaction, login, situation } = waiting
  const { choosing } = situation
  const encounterId = choosing === 'encounter' ? form.get('encounterId') : undefined
  const read = await fhirReader(context, login.clinician)
  const problem = await checkSubject(context, read, { patientId, encounterId })
  if (problem?.kind === 'away') return sendPickerAway(reply, context, waiting, problem)
  if (problem) return sendUnknown(request, reply, context, interaction)
  if (choosing === 'encounter' && encounterId === undefined && form.get('step') !== 'encounter')
    return reply.redirect(pickAddress(interaction.id, patientId), 303)
  const picked = {
    clinicianId: login.clinician.id,
    patientId,
    ...(encounterId === undefined ? {} : { encounterId }),
  }
  return proceed(reply, context, await keepPicked(context.store, interaction, picked))
}

async function showPatients(
  reply: FastifyReply,
  context: AuthContext,
  waiting: Waiting,
  { search, again = false }: { readonly search?: string | undefined; readonly again?: boolean },
): Promise<FastifyReply> {
  const read = await fhirReader(context, waiting.login.clinician)
  const list = await findPatients(read, search)
  if (list.kind === 'away') return sendPickerAway(reply, context, waiting, list)
  const page = patientPage(optionsOf(context, waiting, list.patients), { list, search, again })
  return reply.sendPage(page, {
    status: again ? 400 : 200,
    formTargets: [waiting.interaction.request.redirectUri],
  })
}

async function showEncounters(
  reply: FastifyReply,
  context: AuthContext,
  waiting: Waiting,
  patient: string,
): Promise<FastifyReply> {
  const read = await fhirReader(context, waiting.login.clinician)
  const picked = await readPicked(read, patient, context.settings.fhirBaseUrl)
  if (picked.kind === 'away') return sendPickerAway(reply, context, waiting, picked)
  if (picked.kind === 'absent') return showPatients(reply, context, waiting, {})
  const page = encounterPage(optionsOf(context, waiting, [picked.person]), picked)
  return reply.sendPage(page, { formTargets: [waiting.interaction.request.redirectUri] })
}

function optionsOf(
  { settings, clock }: AuthContext,
  { situation, login, interaction }: Waiting,
  people: readonly Person[],
): PickerOptions {
  return {
    client: situation.client,
    login,
    interactionId: interaction.id,
    redirectUri: interaction.request.redirectUri,
    asksForOthers: parseScopes(interaction.request.scope).some(
      one => one.kind === 'resource' && one.context === 'user',
    ),
    sampleData: showsSampleData(settings, people),
    now: clock(),
  }
}

function sendPickerAway(
  reply: FastifyReply,
  context: AuthContext,
  { login, interaction }: Waiting,
  away: Away,
) {
  return sendAway(reply, context, { login, away, since: undefined, tryAgain: pickAddress(interaction.id) })
}

function sendUnknown(
  request: FastifyRequest,
  reply: FastifyReply,
  { clock }: AuthContext,
  { id }: Interaction,
) {
  const page = errorPage({
    kind: 'refused',
    title: 'This choice cannot be made',
    text: ['The patient or the encounter is not here, or you may not see it. No record was opened.'],
    code: '404',
    reference: request.id,
    now: clock(),
    actions: [{ href: pickAddress(id), text: 'Choose again' }],
  })
  return reply.sendPage(page, { status: 404 })
}
