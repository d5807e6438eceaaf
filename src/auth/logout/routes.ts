import type { FastifyInstance } from 'fastify'
import { type Html, html, renderPage } from '../../web/index.ts'
import { auditEvent } from '../audit.ts'
import type { AuthContext } from '../context.ts'
import { clearLoginCookie, endLogin, findLastLogin, requireLogin } from '../login/login.ts'
import { paths } from '../paths.ts'
import { makeSignedInBar } from '../portal/page-parts.ts'

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

/** Grants with `offline_access` do not end with the login. */
export function describeLogout(): Html {
  return html`After you sign out, apps that you opened can no longer read records, except those with access while you are away. <a href="${paths.manage}">Apps with access</a> lists these and lets you remove them.`
}
