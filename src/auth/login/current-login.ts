import type { FastifyReply, FastifyRequest } from 'fastify'
import { defineCookie } from '../../web/index.ts'
import type { AuthContext, AuthSettings } from '../context.ts'
import { paths } from '../paths.ts'
import { findLogin, type Login, recordLoginUse } from './login.ts'

/** Finds the login of the browser, unless it was idle for too long. Opening a page counts as use. */
export async function findCurrentLogin(
  context: AuthContext,
  request: FastifyRequest,
): Promise<Login | undefined> {
  const { settings, store, clock } = context
  const login = await findLastLogin(context, request)
  if (!login || isIdle(login, settings.loginIdleSeconds, clock())) return undefined
  if (isNavigation(request)) await recordLoginUse(store, login, clock())
  return { ...login, mayViewActivity: mayViewActivity(settings, login.clinician.username) }
}

/** Like `findCurrentLogin`, but also finds an idle login, which can be ended or replaced. */
export async function findLastLogin(
  { settings, store, clock }: AuthContext,
  request: FastifyRequest,
): Promise<Login | undefined> {
  const id = request.cookies[makeLoginCookie(settings.issuerUrl).name]
  return id === undefined ? undefined : findLogin(store, id, clock())
}

function isIdle({ lastUsedAt }: Login, idleSeconds: number, now: number): boolean {
  return idleSeconds > 0 && now - lastUsedAt >= idleSeconds * 1000
}

// A polling script does not count as use. Over plain http browsers omit `Sec-Fetch-Mode`, so our scripts send a header.
function isNavigation({ headers }: FastifyRequest): boolean {
  return headers['x-requested-with'] === undefined && (headers['sec-fetch-mode'] ?? 'navigate') === 'navigate'
}

/** Redirects to the login page without a login. */
export function requireLogin(
  context: AuthContext,
  handle: (request: FastifyRequest, reply: FastifyReply, login: Login) => Promise<FastifyReply>,
): (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply> {
  return async (request, reply) => {
    const login = await findCurrentLogin(context, request)
    return login ? handle(request, reply, login) : reply.redirect(paths.login, 302)
  }
}

/** A session cookie; the login itself ends after 8 hours. */
export function setLoginCookie({ settings }: AuthContext, reply: FastifyReply, id: string): void {
  const { name, attributes } = makeLoginCookie(settings.issuerUrl)
  reply.setCookie(name, id, attributes)
}

export function clearLoginCookie({ settings }: AuthContext, reply: FastifyReply): void {
  const { name, attributes } = makeLoginCookie(settings.issuerUrl)
  reply.clearCookie(name, attributes)
}

// Browsers share cookies between ports, so the app's cookies have other names.
function makeLoginCookie(issuerUrl: string) {
  return defineCookie(issuerUrl, 'sallyport-login')
}

/** The clinicians in the setting may view the activity page; by default everyone on loopback. */
export function mayViewActivity({ audit, onLoopback }: AuthSettings, username: string): boolean {
  return audit.activityClinicians?.includes(username) ?? onLoopback
}
