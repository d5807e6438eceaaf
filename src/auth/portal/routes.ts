import type { FastifyInstance, FastifyReply } from 'fastify'
import type { AuthContext } from '../context.ts'
import { currentLogin } from '../login/current-login.ts'
import type { Login } from '../login/login.ts'
import { readParameters } from '../parameters.ts'
import { paths } from '../paths.ts'
import { addressesOf, findApps } from './apps.ts'
import { sendAway, watch } from './away.ts'
import { fhirReader } from './fhir-reader.ts'
import { listHtml, portalAddress } from './list-html.ts'
import { portalPage } from './page.ts'
import { findPatients } from './patients.ts'
import { readPicked } from './picked.ts'
import { nonePicked, pickedAbsent, pickedHtml } from './picked-html.ts'

/** `GET /portal` (service.md 4.1): find a patient, pick one, choose the encounter, launch. */
export function portalRoutes(app: FastifyInstance, context: AuthContext): void {
  const fhirServer = watch()

  app.get(paths.portal, async (request, reply) => {
    const login = await currentLogin(context, request)
    if (!login) return reply.redirect(paths.login, 302)
    const query = readParameters(request.query)
    const search = query.get('search')?.trim() || undefined
    return show(reply, login, search, query.get('patient'))
  })

  async function show(
    reply: FastifyReply,
    login: Login,
    search: string | undefined,
    patient: string | undefined,
  ): Promise<FastifyReply> {
    const { settings, clock } = context
    const read = await fhirReader(context, login.clinician)
    const [list, picked, apps] = await Promise.all([
      findPatients(read, search),
      patient === undefined ? undefined : readPicked(read, patient, settings.fhirBaseUrl),
      findApps(context),
    ])
    const away = 'kind' in list ? list : picked?.kind === 'away' ? picked : undefined
    fhirServer.saw(away === undefined, clock())
    if (away || 'kind' in list || picked?.kind === 'away') {
      const tryAgain = portalAddress({ search, ...(patient === undefined ? {} : { patient }) })
      const reason = away ?? { kind: 'away', reason: 'No answer' }
      return sendAway(reply, context, { login, away: reason, since: fhirServer.since(), tryAgain })
    }
    const page = portalPage({
      settings,
      login,
      list: listHtml({ list, search, pickedId: patient, now: clock() }),
      beside: !picked
        ? nonePicked()
        : picked.kind === 'absent'
          ? pickedAbsent(search)
          : pickedHtml({ picked, apps, search, now: clock() }),
      isPicked: picked !== undefined,
    })
    return reply.sendPage(page, { formTargets: addressesOf(apps) })
  }
}
