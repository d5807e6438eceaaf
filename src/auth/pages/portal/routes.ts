import type { FastifyInstance, FastifyReply } from 'fastify'
import { toSentence } from '../../../core/index.ts'
import { type Html, html, renderBadge, renderPageHead } from '../../../web/ui/index.ts'
import { createFhirReader, type Unavailable } from '../../base/fhir-reader.ts'
import { paths } from '../../base/paths.ts'
import { readParameters } from '../../base/request.ts'
import type { AuthContext } from '../../oauth/context.ts'
import { findApp, findApps } from '../../oauth/launch/apps.ts'
import { readEncounterChoice } from '../../oauth/launch/options.ts'
import { findPatients, listPeople } from '../../patients/patients.ts'
import { readPicked } from '../../patients/picked.ts'
import { findSearchFault } from '../../patients/queries.ts'
import { findRecent } from '../../patients/recent-use.ts'
import { findSuggestions } from '../../patients/suggest-searches.ts'
import type { Login } from '../../users/find-login.ts'
import { requireClinician } from '../../users/login.ts'
import { listLaunchTargets, listLogos } from '../parts/apps.ts'
import { noteOutage, renderSignedInPage, sendUnavailable } from '../parts/page-parts.ts'
import { buildPortalUrl, renderList } from '../parts/patient-list.ts'
import type { EnteredLaunch } from './app-choice.ts'
import { type PickedOptions, renderNonePicked, renderPatientNotFound, renderPicked } from './picked-panel.ts'

/** `GET /portal`: find a patient, choose the encounter, launch an app. */
export function addPortalRoutes(app: FastifyInstance, context: AuthContext): void {
  app.get(
    paths.portal,
    requireClinician(context, async (request, reply, login) => {
      const query = readParameters(request.query)
      const search = query.get('search')?.trim() || undefined
      const text = query.get('app')?.trim() || undefined
      const fault = findSearchFault(search) ?? findSearchFault(text)
      if (fault) return reply.sendProblem({ kind: 'malformed', text: toSentence(fault.text) })
      return sendPortal(
        reply,
        context,
        login,
        {
          search,
          app: text,
          page: query.get('page'),
          patient: query.get('patient'),
          client: query.get('client'),
          encounters: query.get('encounters'),
          apps: query.get('apps'),
        },
        readEntered(request.query),
      )
    }),
  )
}

interface PortalQuery {
  readonly search?: string | undefined
  /** The position of a later page of patients. */
  readonly page?: string | undefined
  readonly patient?: string | undefined
  readonly client?: string | undefined
  /** The text by which apps are searched. */
  readonly app?: string | undefined
  readonly encounters?: string | undefined
  /** 'find': apps are searched. */
  readonly apps?: string | undefined
}

/** The launch form, which is shown again as it was. */
export function readEntered(query: unknown): EnteredLaunch | undefined {
  const form = readParameters(query)
  return form.get('step') === undefined ? undefined : { form, encounterId: readEncounterChoice(query) }
}

/** Sends the list of patients with the selected patient, or with the launch form again as it was sent. */
export async function sendPortal(
  reply: FastifyReply,
  context: AuthContext,
  login: Login,
  query: PortalQuery,
  entered?: EnteredLaunch,
): Promise<FastifyReply> {
  const { search, page, patient } = query
  const { settings, store, clock } = context
  const { user } = login
  const [read, recent] = await Promise.all([
    createFhirReader(context, user, { purpose: 'patient-list', address: reply.request.ip }),
    findRecent(store.db, user.id, 'patient'),
  ])
  const allEncounters = query.encounters === 'all'
  const [list, picked, apps, named] = await Promise.all([
    findPatients(read, { search, page, recent }),
    patient === undefined
      ? undefined
      : readPicked(read, patient, { fhirBaseUrl: settings.fhirBaseUrl, allEncounters }),
    findApps(context, user.id, query.app),
    findApp(context, query.client),
  ])
  const now = clock()
  const since = noteOutage(context, list.kind === 'list' && picked?.kind !== 'unavailable')
  const tryAgain = buildPortalUrl({ search, patient })
  if (list.kind === 'unavailable') return sendUnavailable(reply, context, login, { ...list, since, tryAgain })
  if (picked?.kind === 'unavailable')
    return sendUnavailable(reply, context, login, { ...picked, since, tryAgain })
  const suggestions = await findSuggestions(context, user, { list, search, address: reply.request.ip })
  const chosen = named ?? apps.apps[0]
  const view = { search, page }
  const hasCards = settings.cds.services.length > 0
  const { developerPages } = login
  const isFindingApp = query.apps === 'find' || query.app !== undefined
  const beside = {
    apps,
    chosen,
    appSearch: query.app,
    view,
    now,
    entered,
    developerPages,
    hasCards,
    isFindingApp,
    allEncounters,
  }
  const document = renderSignedInPage(
    context,
    login,
    {
      title: 'Patients',
      current: 'portal',
      people: [...listPeople(list), ...(picked?.kind === 'found' ? [picked.person] : [])],
      footer: html`<span class="base">FHIR base <span class="url">${settings.fhirBaseUrl}</span> ${renderBadge('Available', 'ok')}</span>`,
      scripts: picked ? ['launch.js', ...(hasCards ? ['cards.js'] : [])] : [],
    },
    html`<div class="portal${picked && ' portal--picked'}">${renderPageHead(isLimited(context, login) ? 'My patients' : 'Patients')}${renderList({ list, suggestions, ...view, pickedId: patient, client: query.client, now })}${renderBeside(picked, beside)}</div>`,
  )
  // A content security policy with all registered apps could exceed the limits of browsers.
  return reply.sendPage(document, {
    status: entered?.fault ? 400 : 200,
    ...(chosen && { formTargets: listLaunchTargets(chosen), images: listLogos(chosen.client) }),
  })
}

/** Whether the site's policy gives this clinician some patients only. */
function isLimited({ userFilter }: AuthContext, { user }: Login): boolean {
  const practitioner = { type: 'Practitioner', id: user.fhirUserId.replace(/^Practitioner\//, '') }
  return userFilter !== undefined && userFilter(practitioner, 'Patient', 's') !== 'everything'
}

function renderBeside(
  picked: Exclude<Awaited<ReturnType<typeof readPicked>>, Unavailable> | undefined,
  options: Omit<PickedOptions, 'picked'>,
): Html {
  if (!picked) return renderNonePicked()
  return picked.kind === 'absent' ? renderPatientNotFound(options.view) : renderPicked({ picked, ...options })
}
