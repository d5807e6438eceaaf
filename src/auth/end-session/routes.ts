import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { auditEvent } from '../audit.ts'
import { sendRefusal } from '../authorize/respond.ts'
import type { AuthContext } from '../context.ts'
import { clearLoginCookie, findLastLogin } from '../login/current-login.ts'
import { endLogin, type Login } from '../login/login.ts'
import { NO_HEAD_ROUTE } from '../no-head-route.ts'
import { type Parameters, readParameters } from '../parameters.ts'
import { paths } from '../paths.ts'
import { Refusal } from '../refusal.ts'
import { type LogoutRequest, readLogoutRequest } from './logout-request.ts'
import { renderEndSessionPage } from './page.ts'

/**
 * `end_session_endpoint` (OIDC RP-Initiated Logout). With an ID token of the clinician who is logged in, the login ends
 * at once. Otherwise the clinician must confirm, so that no other site can sign anyone out.
 */
export function addEndSessionRoutes(app: FastifyInstance, context: AuthContext): void {
  const handleLogout = async (request: FastifyRequest, reply: FastifyReply, parameters: Parameters) => {
    const logout = await readLogoutRequest(context, parameters)
    if (logout instanceof Refusal) return sendRefusal(reply, context, logout)
    const login = await findLastLogin(context, request)
    if (!login || login.clinician.id === logout.subject)
      return endSession(context, request, reply, logout, login)
    const formTargets = logout.returnTo === undefined ? [] : [logout.returnTo]
    return reply.sendPage(renderEndSessionPage(login, logout, listFields(parameters)), { formTargets })
  }
  app.get(paths.endSession, NO_HEAD_ROUTE, (request, reply) =>
    handleLogout(request, reply, readParameters(request.query)),
  )

  // A browser omits the login cookie from a cross-site POST, but not from the GET that follows.
  app.post(paths.endSession, async (request, reply) => {
    const parameters = readParameters(request.body)
    if (await findLastLogin(context, request)) return handleLogout(request, reply, parameters)
    const logout = await readLogoutRequest(context, parameters)
    if (logout instanceof Refusal) return sendRefusal(reply, context, logout)
    return reply.redirect(`${paths.endSession}?${new URLSearchParams(listFields(parameters))}`, 303)
  })

  app.post(paths.endSessionConfirmed, async (request, reply) => {
    const logout = await readLogoutRequest(context, readParameters(request.body))
    if (logout instanceof Refusal) return sendRefusal(reply, context, logout)
    return endSession(context, request, reply, logout, await findLastLogin(context, request))
  })
}

async function endSession(
  context: AuthContext,
  request: FastifyRequest,
  reply: FastifyReply,
  { returnTo }: LogoutRequest,
  login: Login | undefined,
): Promise<FastifyReply> {
  if (login) {
    const event = { kind: 'logout', status: 302, clinician: login.clinician } as const
    await context.store.db.transaction().execute(async trx => {
      await endLogin(trx, login.idHash, context.clock())
      await auditEvent(context, request, event, trx)
    })
  }
  clearLoginCookie(context, reply)
  return reply.redirect(returnTo ?? `${paths.login}?signed-out=1`, 302)
}

/** The parameters for the next page, without the ID token, which must not be in a URL of this server. */
function listFields(parameters: Parameters): Record<string, string> {
  const names = ['client_id', 'post_logout_redirect_uri', 'state'] as const
  return Object.fromEntries(
    names.flatMap(name => {
      const value = parameters.get(name)
      return value === undefined ? [] : [[name, value]]
    }),
  )
}
