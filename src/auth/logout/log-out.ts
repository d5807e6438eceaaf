import type { FastifyReply, FastifyRequest } from 'fastify'
import { type Html, html, renderPage } from '../../web/index.ts'
import { auditEvent } from '../audit.ts'
import type { AuthContext } from '../context.ts'
import { clearLoginCookie, endLogin, findIdToken, type Login } from '../login/login.ts'
import { paths } from '../paths.ts'

/** Ends the login of the browser and then, if an identity provider authenticated the user, the session there. */
export async function logOut(
  context: AuthContext,
  request: FastifyRequest,
  reply: FastifyReply,
  login: Login | undefined,
  returnTo?: string,
): Promise<FastifyReply> {
  const idToken = login && (await findIdToken(context, login))
  if (login) {
    const event = { kind: 'logout', status: 302, clinician: login.clinician } as const
    await context.store.db.transaction().execute(async trx => {
      await endLogin(trx, login.idHash, context.clock())
      await auditEvent(context, request, event, trx)
    })
  }
  clearLoginCookie(context, reply)
  const logout = login && (await findProviderLogout(context, login, idToken, returnTo))
  if (!logout) return reply.redirect(returnTo ?? `${paths.login}?signed-out=1`, 302)
  const formTargets = [logout.url, ...(returnTo === undefined ? [] : [returnTo])]
  return reply.sendPage(renderProviderLogout(logout), { formTargets })
}

/** A request to the `end_session_endpoint` of a provider (OIDC RP-Initiated Logout, 2). */
interface ProviderLogout {
  readonly name: string
  readonly url: string
  readonly fields: Readonly<Record<string, string>>
}

async function findProviderLogout(
  { providers, settings, sealer }: AuthContext,
  { issuer }: Login,
  idToken: string | undefined,
  returnTo: string | undefined,
): Promise<ProviderLogout | undefined> {
  const provider = providers.findByIssuer(issuer)
  if (provider?.kind !== 'oidc') return undefined
  const configuration = await providers.getClient(provider).discover()
  const { end_session_endpoint: url } = configuration?.serverMetadata() ?? {}
  if (url === undefined) return undefined
  return {
    ...{ name: provider.name, url },
    fields: {
      // The form replaces the query of the URL.
      ...Object.fromEntries(new URL(url).searchParams),
      client_id: provider.clientId,
      post_logout_redirect_uri: settings.issuerUrl + paths.loggedOut,
      ...(idToken === undefined ? {} : { id_token_hint: idToken }),
      ...(returnTo === undefined ? {} : { state: sealer.seal(returnTo, RETURN_PURPOSE) }),
    },
  }
}

const RETURN_PURPOSE = 'return after the logout at a provider'

/** Where the browser goes after the logout at the provider. Only this server can have made the state. */
export function findReturnUrl({ sealer }: AuthContext, state: string): string {
  return sealer.tryOpen(state, RETURN_PURPOSE) ?? `${paths.login}?signed-out=1`
}

/**
 * A page, because the content security policy of the page before allows no redirect to the provider. A script submits
 * its form. With GET, because browsers omit `SameSite=Lax` cookies of the provider from a POST.
 */
function renderProviderLogout({ name, url, fields }: ProviderLogout): Html {
  const hidden = Object.entries(fields).map(
    ([field, value]) => html`<input type="hidden" name="${field}" value="${value}">`,
  )
  return renderPage(
    { title: 'Signed out', bar: { kind: 'flow' }, width: 'flow', scripts: ['submit.js'] },
    html`<div class="pagehead"><div><h1>You are signed out</h1>
<p class="pagehead__lead">One more step: sign out of your ${name}, so that nobody else can use it on this computer.</p></div></div>
<form class="actions" method="get" action="${url}" data-submit>${hidden}<button class="btn">Sign out of ${name}</button><a class="btn btn--quiet" href="${paths.login}">Stay signed in there</a></form>`,
  )
}
