import type { FastifyInstance } from 'fastify'
import { type Html, html, renderPage } from '../../web/index.ts'
import type { AuthContext } from '../context.ts'
import { findLastLogin, requireLogin } from '../login/login.ts'
import { readParameters } from '../parameters.ts'
import { paths } from '../paths.ts'
import { makeSignedInBar } from '../portal/page-parts.ts'
import { findReturnUrl, logOut } from './log-out.ts'

/**
 * `GET /logout` shows a button, `POST /logout` ends the login and its grants. An identity provider redirects to
 * `GET /login/logged-out`.
 */
export function addLogoutRoutes(app: FastifyInstance, context: AuthContext): void {
  app.get(
    paths.logout,
    requireLogin(context, async (_request, reply, login) => {
      const bar = makeSignedInBar(login)
      return reply.sendPage(renderPage({ title: 'Sign out', bar, width: 'flow' }, renderQuestion()))
    }),
  )

  app.post(paths.logout, async (request, reply) => {
    return logOut(context, request, reply, await findLastLogin(context, request))
  })

  app.get(paths.loggedOut, (request, reply) =>
    reply.redirect(findReturnUrl(context, readParameters(request.query).get('state') ?? ''), 302),
  )
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
