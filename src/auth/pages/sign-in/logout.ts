import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { isRedirecting } from '../../../config/index.ts'
import { isFailure } from '../../../core/index.ts'
import { type Html, html, renderHidden, renderPage, renderPageHead } from '../../../web/ui/index.ts'
import { auditEvent } from '../../base/audit.ts'
import { NO_HEAD_ROUTE, paths } from '../../base/paths.ts'
import { type AuthRefusal, refuse } from '../../base/refusal.ts'
import { type Parameters, readParameters } from '../../base/request.ts'
import { checkLengths } from '../../oauth/authorize/checks.ts'
import { recordRefusal } from '../../oauth/authorize/refuse.ts'
import { type Client, findClient } from '../../oauth/clients/client.ts'
import type { AuthContext } from '../../oauth/context.ts'
import { verifyOwnJwt } from '../../oauth/keys/key-ring.ts'
import type { Login } from '../../users/find-login.ts'
import { clearLoginCookie, endLogin, findIdToken, findLastLogin, requireLogin } from '../../users/login.ts'
import { forgetReturnPath } from '../../users/return-path.ts'
import { renderAppName } from '../parts/apps.ts'
import { sendStep } from '../parts/authorize-step.ts'
import { makeSignedInBar } from '../parts/page-parts.ts'

/** Ends the login of the browser and then, if an identity provider authenticated the user, the session there. */
async function logOut(
  context: AuthContext,
  reply: FastifyReply,
  login: Login | undefined,
  returnTo?: string,
): Promise<FastifyReply> {
  const idToken = login && (await findIdToken(context, login))
  if (login) {
    const event = { kind: 'logout', status: 302, user: login.user } as const
    await context.store.db.transaction().execute(async trx => {
      const details = { ended: await endLogin(trx, login.idHash) }
      await auditEvent(context, reply.request, { ...event, details }, trx)
    })
  }
  clearLoginCookie(context, reply)
  forgetReturnPath(context, reply)
  const logout = login && (await findProviderLogout(context, login, idToken, returnTo))
  if (!logout) return reply.redirect(returnTo ?? `${paths.login}?signed-out=1`, 302)
  const formTargets = [logout.url, ...(returnTo === undefined ? [] : [returnTo])]
  return reply.sendPage(renderProviderLogout(context, logout), { formTargets })
}

/** A request to the `end_session_endpoint` of a provider (OIDC RP-Initiated Logout, 2). */
interface ProviderLogout {
  readonly name: string
  readonly url: string
  readonly fields: Fields
}

async function findProviderLogout(
  { providers, rules, settings, sealer }: AuthContext,
  { issuer }: Login,
  idToken: string | undefined,
  returnTo: string | undefined,
): Promise<ProviderLogout | undefined> {
  const provider = rules.findByIssuer(issuer)
  if (!isRedirecting(provider)) return undefined
  const url = await providers.getClient(provider).findLogoutUrl()
  if (url === undefined) return undefined
  return {
    name: provider.name,
    url: url.href,
    fields: {
      // The form replaces the query of the URL.
      ...Object.fromEntries(url.searchParams),
      client_id: provider.clientId,
      post_logout_redirect_uri: settings.issuerUrl + paths.loggedOut,
      id_token_hint: idToken,
      state: returnTo && sealer.seal(returnTo, RETURN_PURPOSE),
    },
  }
}

const RETURN_PURPOSE = 'return after the logout at a provider'

/** Where the browser goes after the logout at the provider. Only this server can have made the state. */
function findReturnUrl({ sealer }: AuthContext, state: string): string {
  return sealer.tryOpen(state, RETURN_PURPOSE) ?? `${paths.login}?signed-out=1`
}

/**
 * A page, because the content security policy of the page before allows no redirect to the provider. A script submits
 * its form. With GET, because browsers omit `SameSite=Lax` cookies of the provider from a POST.
 */
function renderProviderLogout({ brand }: AuthContext, { name, url, fields }: ProviderLogout): Html {
  return renderPage(
    {
      title: 'Signed out',
      brand,
      bar: { kind: 'flow' },
      width: 'flow',
      scripts: ['signed-out.js', 'submit.js'],
    },
    html`${renderPageHead('You are signed out', `One more step: sign out of your ${name}, so that nobody else can use it on this computer.`)}
<form class="actions" method="get" action="${url}" data-submit>${renderHidden(fields)}<button class="btn">Sign out of ${name}</button><a class="btn btn--quiet" href="${paths.login}">Stay signed in there</a></form>`,
  )
}

/**
 * `GET /logout` shows a button, `POST /logout` ends the login and its grants. An identity provider redirects to
 * `GET /login/logged-out`.
 */
export function addLogoutRoutes(app: FastifyInstance, context: AuthContext): void {
  app.get(
    paths.logout,
    requireLogin(context, async (_request, reply, login) =>
      reply.sendPage(renderQuestion(context, login, { lead: LOGOUT_EFFECT, action: paths.logout })),
    ),
  )

  app.post(paths.logout, async (request, reply) => {
    return logOut(context, reply, await findLastLogin(context, request))
  })

  app.get(paths.loggedOut, (request, reply) =>
    reply.redirect(findReturnUrl(context, readParameters(request.query).get('state') ?? ''), 302),
  )
}

/** Asks the user to confirm a logout. */
function renderQuestion(
  { brand }: AuthContext,
  login: Login,
  { lead, action, fields = {} }: { readonly lead: Html; readonly action: string; readonly fields?: Fields },
): Html {
  return renderPage(
    { title: 'Sign out', brand, bar: makeSignedInBar(login), width: 'flow' },
    html`${renderPageHead('Sign out?', lead)}
<form class="actions" method="post" action="${action}">${renderHidden(fields)}<button class="btn">Sign out</button><a class="btn btn--quiet" href="${paths.portal}">Stay signed in</a></form>`,
  )
}

type Fields = Readonly<Record<string, string | undefined>>

/** Grants with `offline_access` do not end with the login. */
const LOGOUT_EFFECT = html`After you sign out, apps that you opened can no longer read records, except those with access while you are away. <a href="${paths.manage}">Apps with access</a> lists these and lets you remove them.`

/**
 * `end_session_endpoint` (OIDC RP-Initiated Logout). With an ID token of the user who is logged in, the login ends
 * at once. Otherwise the user must confirm, so that no other site can sign anyone out.
 */
export function addEndSessionRoutes(app: FastifyInstance, context: AuthContext): void {
  const handleLogout = async (request: FastifyRequest, reply: FastifyReply, parameters: Parameters) => {
    const logout = await readLogoutRequest(context, parameters)
    if (isFailure(logout)) return sendStep(reply, context, await recordRefusal(request, context, logout))
    const login = await findLastLogin(context, request)
    if (!login || login.user.id === logout.subject) return logOut(context, reply, login, logout.returnTo)
    const formTargets = logout.returnTo === undefined ? [] : [logout.returnTo]
    const who = logout.client ? renderAppName(logout.client) : 'An app'
    const page = renderQuestion(context, login, {
      lead: html`${who} asks to sign you out. ${LOGOUT_EFFECT}`,
      action: paths.endSessionConfirmed,
      fields: listFields(parameters),
    })
    return reply.sendPage(page, { formTargets })
  }
  app.get(paths.endSession, NO_HEAD_ROUTE, (request, reply) =>
    handleLogout(request, reply, readParameters(request.query)),
  )

  // A browser omits the login cookie from a cross-site POST, but not from the GET that follows.
  app.post(paths.endSession, async (request, reply) => {
    const parameters = readParameters(request.body)
    if (await findLastLogin(context, request)) return handleLogout(request, reply, parameters)
    const logout = await readLogoutRequest(context, parameters)
    if (isFailure(logout)) return sendStep(reply, context, await recordRefusal(request, context, logout))
    return reply.redirect(`${paths.endSession}?${new URLSearchParams(listFields(parameters))}`, 303)
  })

  app.post(paths.endSessionConfirmed, async (request, reply) => {
    const logout = await readLogoutRequest(context, readParameters(request.body))
    if (isFailure(logout)) return sendStep(reply, context, await recordRefusal(request, context, logout))
    return logOut(context, reply, await findLastLogin(context, request), logout.returnTo)
  })
}

/** The parameters for the next page, without the ID token, which must not be in a URL of this server. */
function listFields({ get }: Parameters): Record<string, string> {
  const names = ['client_id', 'post_logout_redirect_uri', 'state'] as const
  return Object.fromEntries(
    names.flatMap(name => {
      const value = get(name)
      return value === undefined ? [] : [[name, value]]
    }),
  )
}

/** A verified logout request of a client (OIDC RP-Initiated Logout, 2). */
interface LogoutRequest {
  readonly client: Client | undefined
  /** A registered URL of the client with its `state`; undefined for an unverified client. */
  readonly returnTo: string | undefined
  /** The user of the `id_token_hint`. */
  readonly subject: string | undefined
}

/** Redirects go only to URLs that the client registered. */
async function readLogoutRequest(
  context: AuthContext,
  parameters: Parameters,
): Promise<LogoutRequest | AuthRefusal> {
  if (parameters.unreadable.size > 0) return refuse('some-parameter-unreadable')
  const tooLong = checkLengths({ parameters })
  if (tooLong) return tooLong
  const hint = await readHint(context, parameters.get('id_token_hint'))
  if (isFailure(hint)) return hint
  const named = parameters.get('client_id')
  if (hint && named !== undefined && named !== hint.clientId) return refuse('id-token-hint-of-another-app')
  const clientId = named ?? hint?.clientId
  const client = clientId === undefined ? undefined : await findClient(context.store.db, context, clientId)
  const returnTo = readPostLogoutUrl(client, parameters)
  if (isFailure(returnTo)) return returnTo
  return { client, returnTo, subject: hint?.subject }
}

// OIDC RP-Initiated Logout, 2: an expired ID token is accepted.
async function readHint({ keys, settings }: AuthContext, hint: string | undefined) {
  if (hint === undefined) return undefined
  const { iss, sub, aud } = verifyOwnJwt(hint, 'JWT', await keys.listPublicKeys()) ?? {}
  return iss === settings.issuerUrl && typeof sub === 'string' && typeof aud === 'string'
    ? { subject: sub, clientId: aud }
    : refuse('id-token-hint-not-ours')
}

function readPostLogoutUrl(
  client: Client | undefined,
  parameters: Parameters,
): string | undefined | AuthRefusal {
  const url = parameters.get('post_logout_redirect_uri')
  if (url === undefined) return undefined
  if (!client?.postLogoutRedirectUris.includes(url)) return refuse('post-logout-uri-not-registered')
  // Anyone can register a URL: this server must not be an open redirector.
  if (!client.approved) return undefined
  const state = parameters.get('state')
  if (state === undefined) return url
  return `${url}${url.includes('?') ? '&' : '?'}${new URLSearchParams({ state })}`
}
