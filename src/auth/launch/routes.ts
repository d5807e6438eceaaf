import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Transaction } from 'kysely'
import type { Schema } from '../../store/index.ts'
import { errorPage } from '../../web/index.ts'
import { auditEvent } from '../audit.ts'
import type { AuthContext } from '../context.ts'
import { forLoggedIn } from '../login/current-login.ts'
import type { Login } from '../login/login.ts'
import { readParameters } from '../parameters.ts'
import { paths } from '../paths.ts'
import { sendAway } from '../portal/away.ts'
import { signedInBar } from '../portal/bar.ts'
import { fhirReader } from '../portal/fhir-reader.ts'
import {
  issueLaunch,
  type LaunchProblem,
  type LaunchWish,
  prepareLaunch,
  type ReadyLaunch,
} from './prepare.ts'
import { readOptions } from './read-options.ts'

/** `POST /portal/launch` (service.md 4.1, rule 5): makes a launch token and sends the browser to the app. */
export function launchRoutes(app: FastifyInstance, context: AuthContext): void {
  app.post(
    paths.portalLaunch,
    forLoggedIn(context, async (request, reply, login) => {
      const read = await fhirReader(context, login.clinician)
      const result = await prepareLaunch(context, login.clinician, read, readWish(request.body))
      const event = { ...launchEvent(result), clinician: login.clinician }
      if (result.kind === 'ready') {
        const record = (trx: Transaction<Schema>) => auditEvent(context, request, event, trx)
        return reply.redirect((await issueLaunch(context, result, record)).address, 302)
      }
      await auditEvent(context, request, event)
      return sendProblem(request, reply, context, login, result)
    }),
  )
}

function launchEvent(result: ReadyLaunch | LaunchProblem) {
  if (result.kind === 'away')
    return { kind: 'launch', allowed: true, status: 502, reason: 'FHIR server away' } as const
  if (result.kind !== 'ready') {
    const { status, title } = wordsOf(result.kind)
    return { kind: 'launch', allowed: false, status, reason: title } as const
  }
  const { patientId, clientId, id } = result.launch
  return { kind: 'launch', status: 302, patient: patientId, client: clientId, launch: id } as const
}

function readWish(body: unknown): LaunchWish {
  const form = readParameters(body)
  return {
    patientId: form.get('patientId'),
    encounterId: form.get('encounterId'),
    clientId: form.get('clientId'),
    repeated: form.unreadable.size > 0,
    options: readOptions(form),
  }
}

function sendProblem(
  request: FastifyRequest,
  reply: FastifyReply,
  context: AuthContext,
  login: Login,
  problem: LaunchProblem,
): FastifyReply {
  if (problem.kind === 'away')
    return sendAway(reply, context, { login, away: problem, since: undefined, tryAgain: paths.portal })
  const { status, title, text } = wordsOf(problem.kind)
  const page = errorPage({
    kind: 'refused',
    title,
    text: [
      problem.kind === 'bad-options' ? `${text} ${problem.fault}.` : text,
      'No record was opened. Go to the patients and launch the app again.',
    ],
    code: String(status),
    reference: request.id,
    now: context.clock(),
    actions: [{ href: paths.portal, text: 'Go to patients' }],
    bar: signedInBar(login),
  })
  return reply.sendPage(page, { status })
}

function wordsOf(kind: Exclude<LaunchProblem['kind'], 'away'>) {
  switch (kind) {
    case 'no-patient':
      return { status: 400, title: 'No patient was picked', text: 'An app is launched for one patient.' }
    case 'unreadable':
      return { status: 400, title: 'This launch could not be read', text: 'A field of the form came twice.' }
    case 'bad-options':
      return { status: 400, title: 'These options cannot be used', text: 'The app was not launched.' }
    case 'unknown-app':
      return { status: 400, title: 'This app cannot be launched', text: 'It is not registered for launches.' }
    case 'unknown-patient':
      return {
        status: 404,
        title: 'This patient is not here',
        text: 'The record was removed, or you may not see it.',
      }
    case 'unknown-encounter':
      return {
        status: 404,
        title: 'This encounter is not of this patient',
        text: 'It was removed, or it belongs to someone else.',
      }
  }
}
