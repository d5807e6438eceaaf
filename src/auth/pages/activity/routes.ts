import { setImmediate as yieldTurn } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import {
  countRecords,
  findPage,
  type KeptRecord,
  listParties,
  type RecordFilter,
} from '../../../audit/index.ts'
import { HOUR_MS } from '../../../core/index.ts'
import { LIMITS } from '../../base/limits.ts'
import { paths } from '../../base/paths.ts'
import { readParameters } from '../../base/request.ts'
import type { AuthContext } from '../../oauth/context.ts'
import type { Login } from '../../users/find-login.ts'
import { requireLogin } from '../../users/login.ts'
import { findFirstEvents, findNames, groupByLaunch, limitLaunches } from '../parts/explain/describe.ts'
import { sendErrorPage } from '../parts/page-parts.ts'
import { type ActivityPageOptions, renderActivityPage } from './page.ts'
import { findDistinctProblems } from './problems.ts'
import { type ActivityView, buildFilter, readView } from './view.ts'

const COUNTED_MS = HOUR_MS

/** `GET /activity`: every OAuth and FHIR request by launch, allowed or refused. */
export function addActivityRoutes(app: FastifyInstance, context: AuthContext): void {
  app.get(
    paths.activity,
    requireLogin(context, async (request, reply, login) => {
      if (!login.mayViewActivity)
        return sendErrorPage(reply, context, {
          status: 403,
          title: 'You do not have access to the activity',
          text: ['This page lists the requests of every app. Your administrator decides who can see it.'],
          actions: [{ href: paths.portal, text: 'Go to the start page' }],
          login,
        })
      const view = readView(readParameters(request.query))
      return reply.sendPage(renderActivityPage(context, await loadPage(context, login, view)))
    }),
  )
}

/** The app server does not know the launch of a request that it could not complete. The auth server's record has it. */
function joinByReference({ reference }: ActivityView, records: readonly KeptRecord[]): readonly KeptRecord[] {
  const launch = records.find(({ launch_id }) => launch_id !== null)?.launch_id
  if (reference === undefined || launch === undefined) return records
  return records.map(record => ({ ...record, launch_id: record.launch_id ?? launch }))
}

async function loadPage(
  context: AuthContext,
  login: Login,
  view: ActivityView,
): Promise<ActivityPageOptions> {
  const { store, settings, clock } = context
  const filter = buildFilter(view, clock())
  const since = Math.max(filter.since ?? 0, clock() - COUNTED_MS)
  const showsProblems = view.result === 'problems'
  // SQLite answers at once: without pauses, a page that is loaded every 2 s would block other requests for all its queries.
  const found = showsProblems ? NO_RECORDS : await findNewest(store, filter, view)
  await yieldTurn()
  const counts = await countRecords(store, { ...filter, since })
  await yieldTurn()
  const parties = await listParties(store)
  await yieldTurn()
  const problems = await findDistinctProblems(context, {
    ...filter,
    ...(!showsProblems && { since }),
    limit: LIMITS.activityRecords,
  })
  await yieldTurn()
  const shown = limitLaunches(found.records.slice(0, LIMITS.activityRecords))
  const records = joinByReference(view, shown)
  const first = await findFirstEvents(store, records)
  const named = showsProblems ? problems.map(({ record }) => record) : [...records, ...first]
  const names = await findNames(store, named, { clients: parties.clients, hidesPatients: true })
  await yieldTurn()
  const addsFirst = view.result === 'all' && view.kind === undefined
  return {
    login,
    view,
    names,
    parties,
    counts: counts && { ...counts, problems: problems.filter(({ record }) => record.at >= since).length },
    kept: settings.audit.kept,
    problems: showsProblems ? problems : [],
    groups: groupByLaunch(records, { first, addsFirst, isNewestFirst: view.result === 'refused', names }),
    older: shown.length < found.records.length ? shown.at(-1) : found.next,
  }
}

const NO_RECORDS = { records: [], next: undefined }

function findNewest(store: AuthContext['store'], filter: RecordFilter, { result, before }: ActivityView) {
  return findPage(store, {
    ...filter,
    allowed: result === 'all' ? undefined : result === 'allowed',
    after: before,
    limit: LIMITS.activityRecords + 1,
  })
}
