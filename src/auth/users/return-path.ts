import type { FastifyReply, FastifyRequest } from 'fastify'
import { type CookieDefinition, defineCookie } from '../../web/index.ts'
import type { BaseContext } from '../base/context.ts'
import { LIFETIME } from '../base/limits.ts'
import { paths } from '../base/paths.ts'

type ReturnContext = Pick<BaseContext, 'settings' | 'developerPages'>

/** A cookie keeps the path, because a sign-in has several ways, some through other sites. */
function defineReturnCookie({ settings }: ReturnContext): CookieDefinition {
  const cookie = defineCookie(settings.issuerUrl, 'sallyport-return')
  return { ...cookie, attributes: { ...cookie.attributes, maxAge: LIFETIME.interaction / 1000 } }
}

/** A cookie has at most 4096 bytes (RFC 6265, 6.1), and escapes take three each. */
const MAX_PATH_CHARACTERS = 1000

/** Remembers the page that the next sign-in of this browser returns to. A path that is too long loses its query. */
export function rememberReturnPath(context: ReturnContext, reply: FastifyReply, path: string): void {
  const { name, attributes } = defineReturnCookie(context)
  const kept = path.length > MAX_PATH_CHARACTERS ? (path.split('?', 1)[0] ?? '') : path
  if (kept.length <= MAX_PATH_CHARACTERS) reply.setCookie(name, kept, attributes)
}

export function forgetReturnPath(context: ReturnContext, reply: FastifyReply): void {
  const { name, attributes } = defineReturnCookie(context)
  reply.clearCookie(name, attributes)
}

/** The page that the next sign-in returns to: only a page of this server, whoever set the cookie. */
export function findReturnPath(context: ReturnContext, request: FastifyRequest): string | undefined {
  const path = request.cookies[defineReturnCookie(context).name]
  const { origin } = new URL(context.settings.issuerUrl)
  const url = path === undefined ? null : URL.parse(path, origin)
  if (url?.origin !== origin) return undefined
  const isBelow = (start: string) => `${url.pathname}/`.startsWith(`${start}/`)
  // Another clinician may sign in: no patient is chosen for them.
  if (isBelow(paths.portal)) return paths.portal
  return listPages(context).some(isBelow) ? url.pathname + url.search : undefined
}

/** The pages to which a sign-in returns begin with these paths. */
function listPages({ developerPages }: ReturnContext): readonly string[] {
  const ofDevelopers = developerPages?.links.map(({ href }) => href) ?? []
  return [paths.home, paths.manage, paths.account, paths.activity, paths.admin, ...ofDevelopers]
}

/** The page that a request opens, or the page of its form. A download would leave the browser on the sign-in page. */
export function findRequestedPage({ url, routeOptions, server }: FastifyRequest): string {
  const [path = '', query] = url.split('?', 2)
  let page = path.replace(DOWNLOAD, '')
  let route = (routeOptions.url ?? '').replace(DOWNLOAD, '')
  while (route !== '' && !server.hasRoute({ method: 'GET', url: route })) {
    page = page.slice(0, page.lastIndexOf('/'))
    route = route.slice(0, route.lastIndexOf('/'))
  }
  return query === undefined ? page : `${page}?${query}`
}

const DOWNLOAD = /\.(?:csv|json|ndjson)$/
