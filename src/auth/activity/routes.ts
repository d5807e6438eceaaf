import type { FastifyInstance } from 'fastify'
import { countRecords, findRecords } from '../../audit/index.ts'
import { errorPage } from '../../web/index.ts'
import type { AuthContext } from '../context.ts'
import { forLoggedIn } from '../login/current-login.ts'
import { readParameters } from '../parameters.ts'
import { paths } from '../paths.ts'
import { signedInBar } from '../portal/bar.ts'
import { namesIn } from './names.ts'
import { activityPage } from './page.ts'
import { filterOf, readView } from './view.ts'

const SHOWN = 100
const COUNTED_MS = 3_600_000

/** `GET /activity` (contract 2): every FHIR request, allowed or refused, newest first. */
export function activityRoutes(app: FastifyInstance, context: AuthContext): void {
  const { store, settings, clock } = context
  app.get(
    paths.activity,
    forLoggedIn(context, async (request, reply, login) => {
      if (!login.seesActivity)
        return reply.sendPage(
          errorPage({
            kind: 'refused',
            title: 'The activity is not shown to you',
            text: ['It shows what every app asked for. Whoever looks after Sallyport says who may see it.'],
            code: '403',
            reference: request.id,
            now: clock(),
            actions: [{ href: paths.portal, text: 'Go to patients' }],
            bar: signedInBar(login),
          }),
          { status: 403 },
        )
      const view = readView(readParameters(request.query))
      const filter = filterOf(view)
      const allowed = view.result === 'all' ? undefined : view.result === 'allowed'
      const [found, counts] = await Promise.all([
        findRecords(store, { ...filter, allowed, after: view.before, limit: SHOWN + 1 }),
        countRecords(store, { ...filter, since: clock() - COUNTED_MS }),
      ])
      const records = found.slice(0, SHOWN)
      const names = await namesIn(store, records)
      const more = found.length > SHOWN
      return reply.sendPage(
        activityPage(context, { login, view, records, names, counts, more, kept: settings.audit.kept }),
      )
    }),
  )
}
