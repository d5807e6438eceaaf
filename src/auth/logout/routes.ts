import type { FastifyInstance } from 'fastify'
import { html, page } from '../../web/index.ts'
import { auditEvent } from '../audit.ts'
import type { AuthContext } from '../context.ts'
import { clearLoginCookie, forLoggedIn, lastLogin } from '../login/current-login.ts'
import { endLogin } from '../login/login.ts'
import { paths } from '../paths.ts'
import { signedInBar } from '../portal/bar.ts'
import { whatEnds } from './what-ends.ts'

/** `GET /logout` shows a button, `POST /logout` ends the login and what apps hold while the clinician is there. */
export function logoutRoutes(app: FastifyInstance, context: AuthContext): void {
  app.get(
    paths.logout,
    forLoggedIn(context, async (_request, reply, login) => {
      const bar = signedInBar(login)
      return reply.sendPage(page({ title: 'Sign out', bar, width: 'flow' }, question()))
    }),
  )

  app.post(paths.logout, async (request, reply) => {
    const login = await lastLogin(context, request)
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

function question() {
  return html`<div class="pagehead"><div><h1>Sign out?</h1>
<p class="pagehead__lead">${whatEnds()}</p></div></div>
<form class="actions" method="post" action="/logout"><button class="btn">Sign out</button><a class="btn btn--quiet" href="${paths.portal}">Stay signed in</a></form>`
}
