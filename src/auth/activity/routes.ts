import type { FastifyInstance } from 'fastify'
import { countRecords, findPage } from '../../audit/index.ts'
import { renderErrorPage } from '../../web/index.ts'
import type { AuthContext } from '../context.ts'
import { requireLogin } from '../login/login.ts'
import { readParameters } from '../parameters.ts'
import { paths } from '../paths.ts'
import { makeSignedInBar } from '../portal/page-parts.ts'
import { findNames } from './find-names.ts'
import { renderActivityPage } from './page.ts'
import { buildFilter, readView } from './view.ts'

const SHOWN = 100
const COUNTED_MS = 3_600_000

/** `GET /activity`: every FHIR request, allowed or refused, newest first. */
export function addActivityRoutes(app: FastifyInstance, context: AuthContext): void {
  const { store, settings, clock } = context
  app.get(
    paths.activity,
    requireLogin(context, async (request, reply, login) => {
      if (!login.mayViewActivity)
        return reply.sendPage(
          renderErrorPage({
            kind: 'refused',
            title: 'You do not have access to the activity',
            text: ['This page lists the requests of every app. Your administrator decides who can see it.'],
            code: '403',
            reference: request.id,
            now: clock(),
            actions: [{ href: paths.portal, text: 'Go to patients' }],
            bar: makeSignedInBar(login),
          }),
          { status: 403 },
        )
      const view = readView(readParameters(request.query))
      const filter = buildFilter(view)
      const allowed = view.result === 'all' ? undefined : view.result === 'allowed'
      const [found, counts] = await Promise.all([
        findPage(store, { ...filter, allowed, after: view.before, limit: SHOWN + 1 }),
        countRecords(store, { ...filter, since: clock() - COUNTED_MS }),
      ])
      const records = found.records.slice(0, SHOWN)
      const names = await findNames(store, records)
      const older = found.records.length > SHOWN ? records.at(-1) : found.next
      return reply.sendPage(
        renderActivityPage(context, {
          login,
          view,
          records,
          names,
          counts,
          older,
          kept: settings.audit.kept,
        }),
      )
    }),
  )
}
