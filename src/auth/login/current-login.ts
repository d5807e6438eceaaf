import type { FastifyReply, FastifyRequest } from 'fastify'
import { cookiePlan } from '../../web/index.ts'
import { seesActivity } from '../activity/who.ts'
import type { AuthContext } from '../context.ts'
import { paths } from '../paths.ts'
import { findLogin, type Login } from './login.ts'

/** The login of the browser that sent a request. */
export async function currentLogin(
  { settings, store, clock }: AuthContext,
  request: FastifyRequest,
): Promise<Login | undefined> {
  const id = request.cookies[loginCookie(settings.issuerUrl).name]
  const login = id === undefined ? undefined : await findLogin(store, id, clock())
  return login && { ...login, seesActivity: seesActivity(settings, login.clinician.username) }
}

/** A handler for whoever is logged in; everybody else is sent to the login page. */
export function forLoggedIn(
  context: AuthContext,
  handle: (request: FastifyRequest, reply: FastifyReply, login: Login) => Promise<FastifyReply>,
): (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply> {
  return async (request, reply) => {
    const login = await currentLogin(context, request)
    return login ? handle(request, reply, login) : reply.redirect(paths.login, 302)
  }
}

/** Ends with the browser; the login itself ends after 8 hours. */
export function setLoginCookie({ settings }: AuthContext, reply: FastifyReply, id: string): void {
  const { name, attributes } = loginCookie(settings.issuerUrl)
  reply.setCookie(name, id, attributes)
}

export function clearLoginCookie({ settings }: AuthContext, reply: FastifyReply): void {
  const { name, attributes } = loginCookie(settings.issuerUrl)
  reply.clearCookie(name, attributes)
}

// Browsers do not keep cookies apart by port, so the app's cookies have other names.
function loginCookie(issuerUrl: string) {
  return cookiePlan(issuerUrl, 'sallyport-login')
}
