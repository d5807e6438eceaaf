import type { FastifyInstance, FastifyRequest } from 'fastify'
import { html, renderPage } from '../web/index.ts'
import { type AppContext, getPortalUrl, isSampleData } from './context.ts'
import { revokeSession } from './oauth/token-requests.ts'
import type { Session } from './sessions/session.ts'
import { auditSession, endSession, findSession } from './sessions/session-store.ts'

/** `/logout` (SESSION-7): GET shows a button, POST ends the session and revokes its tokens. */
export function addLogoutRoutes(app: FastifyInstance, context: AppContext): void {
  app.get('/logout', async (request, reply) => {
    const session = await findSessionOfCookie(context, request)
    return reply.sendPage(session ? askPage(context) : renderEndedPage(context))
  })

  app.post('/logout', async (request, reply) => {
    const session = await findSessionOfCookie(context, request)
    if (session) {
      await context.store.db.transaction().execute(async trx => {
        await endSession(trx, session)
        const event = { kind: 'session-end', status: 303, requestId: request.id } as const
        await auditSession(context, session, event, trx)
      })
      await revokeSession(context, session)
    }
    const { name, attributes } = context.sessionCookie
    return reply.clearCookie(name, attributes).redirect('/logout', 303)
  })
}

async function findSessionOfCookie(
  context: AppContext,
  request: FastifyRequest,
): Promise<Session | undefined> {
  const found = await findSession(context, request.cookies[context.sessionCookie.name])
  return found.ok ? found.value : undefined
}

function askPage({ settings }: AppContext) {
  return renderPage(
    {
      title: 'End session',
      site: 'Demo app',
      bar: { kind: 'app' },
      width: 'flow',
      sampleData: isSampleData(settings),
    },
    html`<div class="pagehead"><div><h1>End this session?</h1><p class="pagehead__lead">This closes the record, and the app can no longer read it. To open it again, launch the app from the patient list.</p></div></div>
<form class="actions" method="post" action="/logout"><button class="btn">End session</button><a class="btn btn--quiet" href="/">Keep working</a></form>`,
  )
}

function renderEndedPage({ settings }: AppContext) {
  return renderPage(
    {
      title: 'Session ended',
      site: 'Demo app',
      bar: { kind: 'app' },
      width: 'flow',
      sampleData: isSampleData(settings),
    },
    html`<div class="pagehead"><div><h1>Your session has ended</h1><p class="pagehead__lead">No record is open in this app. You may still be signed in to the portal.</p></div></div>
<p class="actions"><a class="btn" href="${getPortalUrl(settings)}">Go to patients</a></p>`,
  )
}
