import type { FastifyReply, FastifyRequest } from 'fastify'
import { cookiePlan } from '../../web/index.ts'
import { seesActivity } from '../activity/who.ts'
import type { AuthContext } from '../context.ts'
import { paths } from '../paths.ts'
import { findLogin, type Login, useLogin } from './login.ts'

/** The login of the browser that sent a request, unless it was not used for too long. A page that is opened uses it. */
export async function currentLogin(
  context: AuthContext,
  request: FastifyRequest,
): Promise<Login | undefined> {
  const { settings, store, clock } = context
  const login = await lastLogin(context, request)
  if (!login || isIdle(login, settings.loginIdleSeconds, clock())) return undefined
  if (isOpened(request)) await useLogin(store, login, clock())
  return { ...login, seesActivity: seesActivity(settings, login.clinician.username) }
}

/** The same, also when it was not used for too long: it can be ended, and it can be followed by another. */
export async function lastLogin(
  { settings, store, clock }: AuthContext,
  request: FastifyRequest,
): Promise<Login | undefined> {
  const id = request.cookies[loginCookie(settings.issuerUrl).name]
  return id === undefined ? undefined : findLogin(store, id, clock())
}

function isIdle({ lastUsedAt }: Login, idleSeconds: number, now: number): boolean {
  return idleSeconds > 0 && now - lastUsedAt >= idleSeconds * 1000
}

// A script that looks for news is no sign that somebody is there. Over plain http a browser does not tell, so ours do.
function isOpened({ headers }: FastifyRequest): boolean {
  return headers['x-requested-with'] === undefined && (headers['sec-fetch-mode'] ?? 'navigate') === 'navigate'
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
