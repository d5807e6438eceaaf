import type { FastifyInstance, FastifyReply } from 'fastify'
import type { Html } from '../../web/index.ts'
import type { AuthContext } from '../context.ts'
import { forLoggedIn } from '../login/current-login.ts'
import type { Login } from '../login/login.ts'
import { readParameters } from '../parameters.ts'
import { paths } from '../paths.ts'
import { logosOf } from './app-identity.ts'
import { findApp, findApps, launchTargets } from './apps.ts'
import { sendAway, watch } from './away.ts'
import { fhirReader } from './fhir-reader.ts'
import { listHtml, portalAddress } from './list-html.ts'
import { portalPage } from './page.ts'
import { type Away, findPatients, findSearchFault } from './patients.ts'
import { readPicked } from './picked.ts'
import { nonePicked, type PickedOptions, pickedAbsent, pickedHtml } from './picked-html.ts'

interface Asked {
  readonly search: string | undefined
  readonly patient: string | undefined
  /** The app to launch, if it is not the default one. */
  readonly client: string | undefined
}

/** `GET /portal` (service.md 4.1): find a patient, pick one, choose the encounter, launch. */
export function portalRoutes(app: FastifyInstance, context: AuthContext): void {
  const fhirServer = watch()

  app.get(
    paths.portal,
    forLoggedIn(context, async (request, reply, login) => {
      const query = readParameters(request.query)
      const search = query.get('search')?.trim() || undefined
      const fault = findSearchFault(search)
      if (fault !== undefined) return reply.sendProblem({ kind: 'malformed', text: fault })
      return show(reply, login, { search, patient: query.get('patient'), client: query.get('client') })
    }),
  )

  async function show(reply: FastifyReply, login: Login, asked: Asked): Promise<FastifyReply> {
    const { search, patient } = asked
    const { settings, clock } = context
    const read = await fhirReader(context, login.clinician)
    const [list, picked, listed, named] = await Promise.all([
      findPatients(read, search),
      patient === undefined ? undefined : readPicked(read, patient, settings.fhirBaseUrl),
      findApps(context),
      asked.client === undefined ? undefined : findApp(context, asked.client),
    ])
    const now = clock()
    const answered = list.kind === 'list' && picked?.kind !== 'away'
    fhirServer.saw(answered, now)
    if (list.kind === 'away') return sendAway(reply, context, awayOf(list))
    if (picked?.kind === 'away') return sendAway(reply, context, awayOf(picked))
    const isListed = !named || listed.some(({ client }) => client.id === named.client.id)
    const apps = isListed ? listed : [...listed, named]
    const chosen = named ?? apps[0]
    const page = portalPage({
      settings,
      login,
      list: listHtml({ list, search, pickedId: patient, now }),
      beside: besideHtml(picked, { apps, chosen, search, now }),
      isPicked: picked !== undefined,
      people: [...list.patients, ...(picked?.kind === 'found' ? [picked.person] : [])],
    })
    // A policy for all registered apps would grow until browsers refuse the page.
    return reply.sendPage(
      page,
      chosen ? { formTargets: launchTargets(chosen), images: logosOf(chosen.client) } : {},
    )

    function awayOf(away: Away) {
      const tryAgain = portalAddress({ search, ...(patient === undefined ? {} : { patient }) })
      return { login, away, since: fhirServer.since(), tryAgain }
    }
  }
}

function besideHtml(
  picked: Exclude<Awaited<ReturnType<typeof readPicked>>, Away> | undefined,
  options: Omit<PickedOptions, 'picked'>,
): Html {
  if (!picked) return nonePicked()
  return picked.kind === 'absent' ? pickedAbsent(options.search) : pickedHtml({ picked, ...options })
}
