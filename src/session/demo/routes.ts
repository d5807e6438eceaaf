import type { FastifyInstance, FastifyRequest } from 'fastify'
import { isFailure, isRecord } from '../../core/index.ts'
import { parseIdleSeconds } from '../../web/http/index.ts'
import { readPerson } from '../../web/person/index.ts'
import { openSessionRequest } from '../api/routes.ts'
import { findAudience } from '../audience.ts'
import { toResponse } from '../failure.ts'
import type { AppContext } from '../oauth/context.ts'
import type { SessionRequest } from '../records/resources.ts'
import { checkAccess } from '../sessions/renew-session.ts'
import { findSession, findVisitor } from '../sessions/session-store.ts'
import { findWholeFailure, loadRecord } from './load-record.ts'
import { findOtherSessions, renderOpenSessions } from './open-sessions.ts'
import { renderRecordPage } from './page.ts'
import { renderFailurePage, type StatePage } from './states.ts'

/** The demo app (DEMO-1): `/s/<sessionId>` shows the patient of a session, `/` lists the sessions of the browser. */
export function addDemoRoutes(app: FastifyInstance, context: AppContext): void {
  app.get('/', async (request, reply) => {
    const { page, status } = await renderOpenSessions(context, request)
    return reply.sendPage(page, { status })
  })

  // An open page polls whether its record may still be shown. This reads no record, and does not extend the session.
  app.head('/s/:sessionId', async (request, reply) => {
    const found = await findSession(context, request)
    const living = isFailure(found) ? found : await checkAccess(context, found)
    return reply.code(isFailure(living) ? toResponse(living).status : 200).send()
  })

  // The user is active on an open page, as its script reports. This reads no record, and is no request of a record.
  app.post('/s/:sessionId/keep-alive', async (request, reply) => {
    const idleSeconds = parseIdleSeconds(isRecord(request.body) ? request.body.idleSeconds : undefined)
    if (idleSeconds === undefined)
      return reply.sendProblem({ kind: 'malformed', text: 'idleSeconds must be a number.' })
    const found = await openSessionRequest(context, request, { idleSeconds })
    return reply.code(isFailure(found) ? toResponse(found).status : 204).send()
  })

  app.get('/s/:sessionId', async (request, reply) => {
    const found = await openSessionRequest(context, request)
    const { page, status } = isFailure(found)
      ? renderFailurePage({ context, request, ...(await findVisitor(context, request)) }, found)
      : await renderSessionPage(found, request)
    return reply.sendPage(page, { status })
  })
}

async function renderSessionPage(found: SessionRequest, request: FastifyRequest): Promise<StatePage> {
  const { context, session } = found
  const [record, others] = await Promise.all([
    loadRecord(found),
    findOtherSessions(context, request, session),
  ])
  const { patient } = record
  if (isFailure(patient)) context.shownPatients.delete(session.sessionId)
  else context.shownPatients.set(session.sessionId, readPerson(patient))
  const failure = findWholeFailure(record)
  return failure
    ? renderFailurePage(
        // What ends while the record is read has lost its access.
        {
          context,
          request,
          audience: findAudience(session),
          end: 'access',
          fhirBaseUrl: session.fhirBaseUrl,
        },
        failure,
      )
    : { status: 200, page: renderRecordPage(found, record, others) }
}
