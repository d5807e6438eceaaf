import type { FastifyInstance } from 'fastify'
import { html, renderPage } from '../../web/index.ts'
import { auditEvent } from '../audit.ts'
import type { AuthContext } from '../context.ts'
import { clearLoginCookie, findLastLogin, requireLogin } from '../login/current-login.ts'
import { endLogin } from '../login/login.ts'
import { paths } from '../paths.ts'
import { makeSignedInBar } from '../portal/bar.ts'
import { describeLogout } from './describe-logout.ts'

/** `GET /logout` shows a button, `POST /logout` ends the login and its grants. */
export function addLogoutRoutes(app: FastifyInstance, context: AuthContext): void {
  app.get(
    paths.logout,
    requireLogin(context, async (_request, reply, login) => {
      const bar = makeSignedInBar(login)
      return reply.sendPage(renderPage({ title: 'Sign out', bar, width: 'flow' }, renderQuestion()))
    }),
  )

  app.post(paths.logout, async (request, reply) => {
    const login = await findLastLogin(context, request)
    if (login) {
      const event = { kind: 'logout', status: 302, clinician: login.clinician } as const
      await context.store.db.transaction().execute(async trx => {
        await endLogin(trx, login.idHash, context.clock())
        await auditEvent(context, request, event, trx)
      })
    }
    clearLoginCookie(context, reply)
    return reply.redirect(`${paths.login}?signed-out=1`, 302)
  })
}

function renderQuestion() {
  return html`<div class="pagehead"><div><h1>Sign out?</h1>
<p class="pagehead__lead">${describeLogout()}</p></div></div>
<form class="actions" method="post" action="/logout"><button class="btn">Sign out</button><a class="btn btn--quiet" href="${paths.portal}">Stay signed in</a></form>`
}
