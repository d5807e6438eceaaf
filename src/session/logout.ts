import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { isFailure } from '../core/index.ts'
import { stripQuery } from '../web/http/index.ts'
import { type Html, html, renderDanger, renderPageHead } from '../web/ui/index.ts'
import { describeWayOn, findAudience } from './audience.ts'
import { renderOpenSessions } from './demo/open-sessions.ts'
import { renderEndedPage, renderFailurePage, type StatePage } from './demo/states.ts'
import type { SessionFailure } from './failure.ts'
import type { AppContext } from './oauth/context.ts'
import { revokeSession } from './oauth/token-requests.ts'
import { renderAppPage } from './page.ts'
import { getSessionPath, type Session } from './session.ts'
import {
  auditSession,
  clearSessionCookie,
  endSession,
  findSession,
  findVisitor,
} from './sessions/session-store.ts'

/**
 * `/s/<sessionId>/logout`, and `/logout` for the only session of a browser (SESSION-7): GET shows a button, POST ends the
 * session and revokes its tokens. If `/logout` could mean several sessions, both show the list of them.
 */
export function addLogoutRoutes(app: FastifyInstance, context: AppContext): void {
  for (const path of ['/logout', '/s/:sessionId/logout']) {
    app.get(path, async (request, reply) => {
      const found = await findSession(context, request)
      if (!isFailure(found)) return reply.sendPage(renderAskPage(context, found))
      const { page, status } = await renderWithoutSession(context, request, found)
      return reply.sendPage(page, { status })
    })

    app.post(path, async (request, reply) => {
      const found = await findSession(context, request)
      if (!isFailure(found)) await logOut(context, request, reply, found)
      else if (found.reason === 'several-sessions')
        return reply.sendPage((await renderOpenSessions(context, request)).page, { status: 409 })
      return reply.redirect(stripQuery(request.url), 303)
    })
  }
}

async function logOut(
  context: AppContext,
  request: FastifyRequest,
  reply: FastifyReply,
  session: Session,
): Promise<void> {
  const ended = await context.store.db.transaction().execute(async trx => {
    const event = { kind: 'session-end', status: 303, requestId: request.id, address: request.ip } as const
    await auditSession(context, session, event, trx)
    return endSession(trx, session, context.clock())
  })
  await revokeSession(context, ended)
  clearSessionCookie(context, reply, session.sessionId)
}

async function renderWithoutSession(
  context: AppContext,
  request: FastifyRequest,
  failure: SessionFailure,
): Promise<StatePage> {
  switch (failure.reason) {
    case 'several-sessions':
      return renderOpenSessions(context, request)
    case 'another-session':
      return renderFailurePage({ context, request, ...(await findVisitor(context, request)) }, failure)
    default:
      return { status: 200, page: renderEndedPage(context, await findVisitor(context, request)) }
  }
}

function renderAskPage({ settings }: AppContext, session: Session): Html {
  const path = getSessionPath(session)
  const { text } = describeWayOn(settings, findAudience(session))
  return renderAppPage(
    { title: 'End session', width: 'flow' },
    html`${renderPageHead('End this session?', html`This closes the record, and the app can no longer read it. To continue after that, ${text}.`)}
<form class="actions" method="post" action="${path}/logout">${renderDanger('End session')}<a class="btn btn--quiet" href="${path}">Keep working</a></form>`,
  )
}
