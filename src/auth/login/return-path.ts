import type { FastifyReply, FastifyRequest } from 'fastify'
import { type CookieDefinition, defineCookie } from '../../web/index.ts'
import type { AuthContext } from '../context.ts'
import { LIFETIME } from '../lifetimes.ts'
import { paths } from '../paths.ts'

/** A cookie keeps the path, because a sign-in has several ways, some through other sites. */
function defineReturnCookie({ settings }: AuthContext): CookieDefinition {
  const cookie = defineCookie(settings.issuerUrl, 'sallyport-return')
  return { ...cookie, attributes: { ...cookie.attributes, maxAge: LIFETIME.interaction / 1000 } }
}

/** A cookie has at most 4096 bytes (RFC 6265, 6.1), and escapes take three each. */
const LONGEST_PATH = 1000

/** Remembers the page that the next sign-in of this browser returns to. */
export function rememberReturnPath(context: AuthContext, reply: FastifyReply, path: string): void {
  const { name, attributes } = defineReturnCookie(context)
  reply.setCookie(name, path.length > LONGEST_PATH ? paths.admin : path, attributes)
}

/** Forgets the page and returns its path: only a page of the administration area, whoever set the cookie. */
export function takeReturnPath(
  context: AuthContext,
  { cookies }: FastifyRequest,
  reply: FastifyReply,
): string | undefined {
  const { name, attributes } = defineReturnCookie(context)
  const path = cookies[name]
  if (path === undefined) return undefined
  reply.clearCookie(name, attributes)
  const { origin } = new URL(context.settings.issuerUrl)
  const url = URL.parse(path, origin)
  const isOurs = url?.origin === origin && `${url.pathname}/`.startsWith(`${paths.admin}/`)
  return isOurs ? url.pathname + url.search : undefined
}
