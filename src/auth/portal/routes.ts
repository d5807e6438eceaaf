import type { FastifyInstance, FastifyReply } from 'fastify'
import type { Html } from '../../web/index.ts'
import { html, type Person, renderBadge, renderPage } from '../../web/index.ts'
import type { AuthContext, AuthSettings } from '../context.ts'
import type { Login } from '../login/login.ts'
import { requireLogin } from '../login/login.ts'
import { readParameters } from '../parameters.ts'
import { paths } from '../paths.ts'
import { findApp, findApps, listLaunchTargets, listLogos } from './apps.ts'
import { createFhirReader } from './fhir-reader.ts'
import { buildPortalUrl, renderList } from './list.ts'
import { makeSignedInBar, showsSampleData } from './page-parts.ts'
import { findPatients, findSearchFault, type Unavailable } from './patients.ts'
import { readPicked } from './picked.ts'
import { type PickedOptions, renderNonePicked, renderPatientNotFound, renderPicked } from './picked-panel.ts'
import { createOutageWatch, sendUnavailable } from './unavailable.ts'

interface PortalQuery {
  readonly search: string | undefined
  readonly patient: string | undefined
  readonly client: string | undefined
}

/** `GET /portal`: find a patient, choose the encounter, launch an app. */
export function addPortalRoutes(app: FastifyInstance, context: AuthContext): void {
  const fhirServer = createOutageWatch()

  app.get(
    paths.portal,
    requireLogin(context, async (request, reply, login) => {
      const query = readParameters(request.query)
      const search = query.get('search')?.trim() || undefined
      const fault = findSearchFault(search)
      if (fault !== undefined) return reply.sendProblem({ kind: 'malformed', text: fault })
      return sendPortal(reply, login, { search, patient: query.get('patient'), client: query.get('client') })
    }),
  )

  async function sendPortal(reply: FastifyReply, login: Login, query: PortalQuery): Promise<FastifyReply> {
    const { search, patient } = query
    const { settings, clock } = context
    const read = await createFhirReader(context, login.clinician)
    const [list, picked, listed, named] = await Promise.all([
      findPatients(read, search),
      patient === undefined ? undefined : readPicked(read, patient, settings.fhirBaseUrl),
      findApps(context),
      query.client === undefined ? undefined : findApp(context, query.client),
    ])
    const now = clock()
    const isReachable = list.kind === 'list' && picked?.kind !== 'unavailable'
    fhirServer.observe(isReachable, now)
    if (list.kind === 'unavailable') return sendUnavailable(reply, context, describeOutage(list))
    if (picked?.kind === 'unavailable') return sendUnavailable(reply, context, describeOutage(picked))
    const isListed = !named || listed.some(({ client }) => client.id === named.client.id)
    const apps = isListed ? listed : [...listed, named]
    const chosen = named ?? apps[0]
    const page = renderPortalPage({
      settings,
      login,
      list: renderList({ list, search, pickedId: patient, now }),
      beside: renderBeside(picked, { apps, chosen, search, now }),
      isPicked: picked !== undefined,
      people: [...list.patients, ...(picked?.kind === 'found' ? [picked.person] : [])],
    })
    // A content security policy with all registered apps could exceed the limits of browsers.
    return reply.sendPage(
      page,
      chosen ? { formTargets: listLaunchTargets(chosen), images: listLogos(chosen.client) } : {},
    )

    function describeOutage(outage: Unavailable) {
      const tryAgain = buildPortalUrl({ search, ...(patient === undefined ? {} : { patient }) })
      return { login, outage, since: fhirServer.since(), tryAgain }
    }
  }
}

function renderBeside(
  picked: Exclude<Awaited<ReturnType<typeof readPicked>>, Unavailable> | undefined,
  options: Omit<PickedOptions, 'picked'>,
): Html {
  if (!picked) return renderNonePicked()
  return picked.kind === 'absent'
    ? renderPatientNotFound(options.search)
    : renderPicked({ picked, ...options })
}

interface PortalPageOptions {
  readonly settings: AuthSettings
  readonly login: Login
  readonly list: Html
  /** The selected patient, or a placeholder. */
  readonly beside: Html
  readonly isPicked: boolean
  readonly people: readonly Person[]
}

function renderPortalPage({ settings, login, list, beside, isPicked, people }: PortalPageOptions): Html {
  const bar = makeSignedInBar(login, 'portal')
  return renderPage(
    { title: 'Patients', bar, sampleData: showsSampleData(settings, people) },
    html`<div class="pagehead"><div><h1>Patients</h1></div>
<p class="base"><span>FHIR base</span> <span class="url">${settings.fhirBaseUrl}</span> ${renderBadge('Available', 'ok')}</p></div>
<div class="portal${isPicked && ' portal--picked'}">${list}${beside}</div>`,
  )
}
