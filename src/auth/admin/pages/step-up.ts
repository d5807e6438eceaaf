import type { FastifyReply, FastifyRequest } from 'fastify'
import { type Html, html, renderPage } from '../../../web/index.ts'
import type { AuthContext } from '../../context.ts'
import { RECENT_SECONDS } from '../../lifetimes.ts'
import type { Login } from '../../login/login.ts'
import { rememberReturnPath } from '../../login/return-path.ts'
import { paths } from '../../paths.ts'
import { makeSignedInBar } from '../../portal/page-parts.ts'

/** Redirects to the sign-in method that the user used before. The sign-in returns to the path. */
export function signInAgain(
  context: AuthContext,
  reply: FastifyReply,
  { issuer }: Login,
  returnPath: string,
): FastifyReply {
  rememberReturnPath(context, reply, returnPath)
  const provider = context.providers.findByIssuer(issuer)
  if (provider?.kind === 'oidc')
    return reply.redirect(`${paths.loginProviders}/${provider.id}?prompt=login`, 302)
  const directory = provider ? `&provider=${provider.id}` : ''
  return reply.redirect(`${paths.login}?prompt=login${directory}`, 302)
}

/**
 * A form that was sent too late: the page keeps its fields, and sends them again after a sign-in in another tab. This works
 * for every sign-in method, and without scripts.
 */
export function renderSignInAgain(request: FastifyRequest, login: Login): Html {
  const fields = Object.entries(request.body ?? {}).flatMap(([name, values]) =>
    [values].flat().map(value => [name, String(value)] as const),
  )
  return renderPage(
    { title: 'Sign in again', bar: makeSignedInBar(login, 'admin'), width: 'flow' },
    html`<div class="pagehead"><div><h1>Sign in again</h1>
<p class="pagehead__lead">This change needs a sign-in in the last ${RECENT_SECONDS / 60} minutes. This page keeps your entries.</p></div></div>
<div class="card card__body stack">
<p>First sign in again in a new tab, then return to this tab and continue.</p>
<form method="post" action="${request.url}">${fields.map(
      ([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`,
    )}
<div class="actions"><a class="btn" href="${paths.admin}/sign-in" target="_blank">Sign in again</a><button class="btn btn--quiet">Continue</button></div></form>
</div>`,
  )
}
