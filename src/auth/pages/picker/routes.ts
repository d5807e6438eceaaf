import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { isFailure, toSentence } from '../../../core/index.ts'
import { parseScopes } from '../../../smart/index.ts'
import type { Person } from '../../../web/person/index.ts'
import { createFhirReader, type Unavailable } from '../../base/fhir-reader.ts'
import { NO_HEAD_ROUTE, paths } from '../../base/paths.ts'
import { refuse } from '../../base/refusal.ts'
import type { Parameters } from '../../base/request.ts'
import { isPatientUser } from '../../base/user.ts'
import { refuseRequest, takeNextStep } from '../../oauth/authorize/proceed.ts'
import { storePickedContext } from '../../oauth/authorize/request.ts'
import type { Waiting } from '../../oauth/authorize/waiting.ts'
import type { AuthContext } from '../../oauth/context.ts'
import { NO_CHOICE, readEncounterChoice } from '../../oauth/launch/options.ts'
import { findLaunchPatient } from '../../oauth/launch/prepare.ts'
import { hasNamesake } from '../../patients/namesakes.ts'
import { findPatients, listPeople } from '../../patients/patients.ts'
import { readPicked } from '../../patients/picked.ts'
import { findSearchFault } from '../../patients/queries.ts'
import { findRecent, recordRecent } from '../../patients/recent-use.ts'
import { findSuggestions } from '../../patients/suggest-searches.ts'
import type { Login } from '../../users/find-login.ts'
import { findOwnRecords, type OwnRecord } from '../../users/own-records.ts'
import { listSignOutScripts, requireWaiting, sendStep } from '../parts/authorize-step.ts'
import { sendErrorPage, sendUnavailable, showsSampleData } from '../parts/page-parts.ts'
import type { ListView } from '../parts/patient-list.ts'
import { buildPickUrl } from '../parts/pick-url.ts'
import { type PickerOptions, renderEncounterPage, renderPatientPage } from './page.ts'

const NONE_SELECTED = refuse('patient-not-chosen')

/**
 * The picker of a standalone launch (`launch/patient`, `launch/encounter`), after the login and before consent. To cancel
 * is to deny access.
 */
export function addPickerRoutes(app: FastifyInstance, context: AuthContext): void {
  app.get(
    paths.pick,
    NO_HEAD_ROUTE,
    requireWaiting(context, ['pick'], async (reply, waiting, query) => {
      const search = query.get('search')?.trim() || undefined
      const fault = findSearchFault(search)
      if (fault) return reply.sendProblem({ kind: 'malformed', text: toSentence(fault.text) })
      const patient = query.get('patient') ?? (await findOnlyPatient(context, waiting))
      return patient !== undefined && waiting.state.picker === 'encounter'
        ? showEncounters(reply, context, waiting, {
            patient,
            all: query.get('encounters') === 'all',
            chosen: readEncounterChoice(reply.request.query),
            search,
            page: query.get('page'),
          })
        : showPatients(reply, context, waiting, { search, page: query.get('page') })
    }),
  )

  app.post(
    paths.pick,
    requireWaiting(context, ['pick'], async (reply, waiting, form) => {
      const { pending, login } = waiting
      if (form.get('cancel') !== undefined) {
        const step = await refuseRequest(reply.request, context, pending, NONE_SELECTED, login)
        return sendStep(reply, context, step)
      }
      // If another user has logged in since the list was shown, it is shown again.
      const isSame = form.get('clinician') === login.user.id
      const patientId = isSame && !form.unreadable.has('patientId') ? form.get('patientId') : undefined
      if (patientId === undefined)
        return showPatients(reply, context, waiting, { ...readView(form), again: isSame })
      return pick(reply, context, waiting, { patientId, form })
    }),
  )
}

async function pick(
  reply: FastifyReply,
  context: AuthContext,
  waiting: Waiting,
  { patientId, form }: { readonly patientId: string; readonly form: Parameters },
): Promise<FastifyReply> {
  const { request } = reply
  const { pending, login, state } = waiting
  const { picker } = state
  const encounterId = picker === 'encounter' ? form.get('encounterId') : undefined
  const read = await createFhirReader(context, login.user, { purpose: 'patient-choice', address: request.ip })
  const person = await findLaunchPatient(context, read, { patientId, encounterId })
  if (isFailure(person))
    return person.reason === 'records-unavailable'
      ? sendPickerUnavailable(reply, context, waiting, person)
      : sendErrorPage(reply, context, {
          status: 404,
          title: 'Not found',
          text: [
            `The ${isPatientUser(login.user) ? 'record or the visit' : 'patient or the encounter'} does not exist, or you do not have access to it. No record was opened.`,
          ],
          actions: [{ href: buildPickUrl(pending.id), text: 'Choose again' }],
          login,
        })
  if (picker === 'encounter' && encounterId === undefined) {
    if (form.get('step') !== 'encounter')
      return reply.redirect(buildPickUrl(pending.id, { patient: patientId, ...readView(form) }), 303)
    if (readEncounterChoice(request.body) === undefined)
      return showEncounters(reply, context, waiting, {
        patient: patientId,
        fault: isPatientUser(login.user) ? 'Choose a visit, or “No visit”.' : NO_CHOICE.text,
        all: form.get('encounters') === 'all',
        ...readView(form),
      })
  }
  const own = (await readRecords(context, login)).find(record => record.patientId === patientId)
  const picked = {
    userId: login.user.id,
    patientId,
    ...(encounterId === undefined ? {} : { encounterId }),
    ...(own && { fhirUserId: own.fhirUserId }),
    ...(state.client.firstParty && (await hasNamesake(read, person)) && { similarName: true as const }),
  }
  const { store, clock } = context
  const stored = await store.db.transaction().execute(async trx => {
    await recordRecent(trx, login.user.id, { kind: 'patient', id: patientId, now: clock() })
    return storePickedContext(trx, pending, picked)
  })
  const step = await takeNextStep(request, context, stored, { ...state, request: stored.request })
  return sendStep(reply, context, step)
}

async function readRecords(context: AuthContext, { user }: Login): Promise<readonly OwnRecord[]> {
  const records = await findOwnRecords(context, user)
  return isFailure(records) ? [] : records
}

/** A patient user with one record chooses only the encounter. */
async function findOnlyPatient(context: AuthContext, { login }: Waiting): Promise<string | undefined> {
  const [only, ...others] = await readRecords(context, login)
  return others.length === 0 ? only?.patientId : undefined
}

/** The list from which the patient is chosen. */
function readView(form: Parameters): ListView {
  const search = form.get('search')
  return { search: findSearchFault(search) === undefined ? search : undefined, page: form.get('page') }
}

interface PatientsView extends Partial<ListView> {
  /** Whether no patient was selected before. */
  readonly again?: boolean
}

async function showPatients(
  reply: FastifyReply,
  context: AuthContext,
  waiting: Waiting,
  { search, page: position, again = false }: PatientsView,
): Promise<FastifyReply> {
  const { user } = waiting.login
  const read = await createFhirReader(context, user, {
    purpose: 'patient-choice',
    address: reply.request.ip,
  })
  // Those who choose among their own records see each of them once.
  const recent = isPatientUser(user) ? [] : await findRecent(context.store.db, user.id, 'patient')
  const list = await findPatients(read, { search, page: position, recent })
  if (list.kind === 'unavailable') return sendPickerUnavailable(reply, context, waiting, list)
  const options = await makeOptions(reply.request, context, waiting, listPeople(list))
  const suggestions = await findSuggestions(context, user, { list, search, address: reply.request.ip })
  const page = renderPatientPage(options, { list, suggestions, search, page: position, again })
  return reply.sendPage(page, {
    status: again ? 400 : 200,
    formTargets: [waiting.pending.request.redirectUri],
  })
}

async function showEncounters(
  reply: FastifyReply,
  context: AuthContext,
  waiting: Waiting,
  {
    patient,
    all = false,
    chosen,
    fault,
    search,
    page: position,
  }: ListView & {
    readonly patient: string
    readonly all?: boolean
    readonly chosen?: string | undefined
    readonly fault?: string
  },
): Promise<FastifyReply> {
  const read = await createFhirReader(context, waiting.login.user, {
    purpose: 'patient-choice',
    address: reply.request.ip,
  })
  const { fhirBaseUrl } = context.settings
  const picked = await readPicked(read, patient, { fhirBaseUrl, allEncounters: all })
  if (picked.kind === 'unavailable') return sendPickerUnavailable(reply, context, waiting, picked)
  if (picked.kind === 'absent') return showPatients(reply, context, waiting, { search, page: position })
  const options = await makeOptions(reply.request, context, waiting, [picked.person])
  const page = renderEncounterPage(options, { picked, isAll: all, chosen, fault, search, page: position })
  return reply.sendPage(page, {
    status: fault === undefined ? 200 : 400,
    formTargets: [waiting.pending.request.redirectUri],
  })
}

async function makeOptions(
  http: FastifyRequest,
  context: AuthContext,
  { state, login, pending }: Waiting,
  people: readonly Person[],
): Promise<PickerOptions> {
  const { settings, brand, clock } = context
  const records = await readRecords(context, login)
  return {
    client: state.client,
    login,
    pendingId: pending.id,
    redirectUri: pending.request.redirectUri,
    asksForOthers: parseScopes(pending.request.scope).some(
      part => part.kind === 'resource' && part.context === 'user',
    ),
    ownRecords: records,
    brand,
    sampleData: showsSampleData(settings, people),
    now: clock(),
    scripts: listSignOutScripts(http, context, login),
  }
}

function sendPickerUnavailable(
  reply: FastifyReply,
  context: AuthContext,
  { login, pending }: Waiting,
  outage: Unavailable,
): FastifyReply {
  return sendUnavailable(reply, context, login, { ...outage, tryAgain: buildPickUrl(pending.id) })
}
