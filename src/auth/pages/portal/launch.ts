import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Transaction } from 'kysely'
import { isFailure } from '../../../core/index.ts'
import type { Schema } from '../../../store/index.ts'
import { auditEvent, describeRefused } from '../../base/audit.ts'
import { createFhirReader } from '../../base/fhir-reader.ts'
import { paths } from '../../base/paths.ts'
import { readParameters } from '../../base/request.ts'
import type { AuthContext } from '../../oauth/context.ts'
import { type FormFault, NO_CHOICE, readEncounterChoice, readOptions } from '../../oauth/launch/options.ts'
import {
  issueLaunch,
  type LaunchProblem,
  type LaunchRequest,
  prepareLaunch,
  type ReadyLaunch,
} from '../../oauth/launch/prepare.ts'
import { recordRecent } from '../../patients/recent-use.ts'
import type { Login } from '../../users/find-login.ts'
import { requireClinician } from '../../users/login.ts'
import { sendLaunchProblem } from '../parts/launch-problem.ts'
import { buildPortalUrl } from '../parts/patient-list.ts'
import { listEntered } from './app-choice.ts'
import { readEntered, sendPortal } from './routes.ts'

/** `POST /portal/launch` creates a launch token and redirects the browser to the app. */
export function addLaunchRoutes(app: FastifyInstance, context: AuthContext): void {
  app.post(
    paths.portalLaunch,
    requireClinician(
      context,
      async (request, reply, login) => {
        const { user } = login
        const read = await createFhirReader(context, user, { purpose: 'launch', address: request.ip })
        const result = await prepareLaunch(context, user, read, readLaunchRequest(request.body))
        const event = { ...describeEvent(result), user }
        if (!isFailure(result)) {
          const { patientId, clientId } = result.launch
          const now = context.clock()
          const record = async (trx: Transaction<Schema>) => {
            await recordRecent(trx, user.id, { kind: 'patient', id: patientId, now })
            await recordRecent(trx, user.id, { kind: 'app', id: clientId, now })
            await auditEvent(context, request, event, trx)
          }
          return reply.redirect((await issueLaunch(context, result, record)).url, 302)
        }
        await auditEvent(context, request, event)
        return result.reason === 'launch-option-invalid' || result.reason === 'launch-encounter-missing'
          ? sendFormAgain(reply, context, login, result)
          : sendLaunchProblem(reply, context, login, result)
      },
      buildFormPage,
    ),
  )
}

/** The portal with all that was entered in a launch form, for a sign-in before it is sent again. */
function buildFormPage({ body }: FastifyRequest): string {
  return buildPortalUrl({ ...readShown(body), ...listEntered(readEntered(body)) })
}

function describeEvent(result: ReadyLaunch | LaunchProblem) {
  if (isFailure(result)) {
    if (result.reason === 'records-unavailable')
      return { kind: 'launch', allowed: true, status: 502, reason: 'FHIR server unreachable' } as const
    const refused =
      result.reason === 'launch-option-invalid'
        ? describeRefused(result.reason, { field: result.field, fault: result.text })
        : describeRefused(result.reason)
    return { kind: 'launch', ...refused } as const
  }
  const { patientId, clientId, id } = result.launch
  return { kind: 'launch', status: 302, patient: patientId, client: clientId, launch: id } as const
}

/** Shows the portal again, with all that was entered and the field at fault marked. */
function sendFormAgain(
  reply: FastifyReply,
  context: AuthContext,
  login: Login,
  fault: FormFault,
): Promise<FastifyReply> {
  const { body } = reply.request
  const entered = { form: readParameters(body), encounterId: readEncounterChoice(body), fault }
  return sendPortal(reply, context, login, readShown(body), entered)
}

/** The patient and the list of the page that sent a launch form. */
function readShown(body: unknown) {
  const form = readParameters(body)
  return {
    search: form.get('search'),
    page: form.get('page'),
    patient: form.get('patientId'),
    client: form.get('clientId'),
    encounters: form.get('encounters'),
  }
}

function readLaunchRequest(body: unknown): LaunchRequest {
  const form = readParameters(body)
  const isChosen = form.get('step') !== 'encounter' || readEncounterChoice(body) !== undefined
  return {
    patientId: form.get('patientId'),
    encounterId: form.get('encounterId'),
    clientId: form.get('clientId'),
    repeated: form.unreadable.size > 0,
    options: isChosen ? readOptions(form) : NO_CHOICE,
  }
}
