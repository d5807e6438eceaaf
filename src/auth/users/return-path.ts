import type { FastifyReply, FastifyRequest } from 'fastify'
import { type CookieDefinition, defineCookie } from '../../web/http/index.ts'
import type { BaseContext } from '../base/context.ts'
import { LIFETIME } from '../base/limits.ts'
import { paths } from '../base/paths.ts'

type ReturnContext = Pick<BaseContext, 'settings' | 'developerPages' | 'sealer'>

/** A cookie keeps the path, because a sign-in has several ways, some through other sites. */
function defineReturnCookie({ settings }: ReturnContext): CookieDefinition {
  const cookie = defineCookie(settings.issuerUrl, 'sallyport-return')
  return { ...cookie, attributes: { ...cookie.attributes, maxAge: LIFETIME.interaction / 1000 } }
}

/** Who signed in last with this browser: still known when the login has ended. It signs nobody in. */
function defineUserCookie({ settings }: Pick<ReturnContext, 'settings'>): CookieDefinition {
  return defineCookie(settings.issuerUrl, 'sallyport-last-user')
}

const USER_PURPOSE = 'the last user of a browser'
const RETURN_PURPOSE = 'return after a sign-in'

export function rememberUser(context: ReturnContext, reply: FastifyReply, userId: string): void {
  const { name, attributes } = defineUserCookie(context)
  reply.setCookie(name, context.sealer.seal(userId, USER_PURPOSE), attributes)
}

export function findLastUser(
  context: Pick<ReturnContext, 'settings' | 'sealer'>,
  { cookies }: FastifyRequest,
): string | undefined {
  return context.sealer.tryOpen(cookies[defineUserCookie(context).name] ?? '', USER_PURPOSE)
}

/** A cookie has at most 4096 bytes (RFC 6265, 6.1). Encryption makes a text longer by a third. */
const MAX_PATH_CHARACTERS = 2000

/** The page that a user of this browser wanted. Encrypted: its query may name a patient. */
interface WantedPage {
  readonly path: string
  /** Undefined if nobody was signed in before. */
  readonly userId: string | undefined
}

/** Remembers the page that the next sign-in of this browser returns to. A path that is too long loses its query. */
export function rememberReturnPath(context: ReturnContext, reply: FastifyReply, path: string): void {
  const { name, attributes } = defineReturnCookie(context)
  const kept = path.length > MAX_PATH_CHARACTERS ? (path.split('?', 1)[0] ?? '') : path
  const wanted: WantedPage = { path: kept, userId: findLastUser(context, reply.request) }
  if (kept.length <= MAX_PATH_CHARACTERS)
    reply.setCookie(name, context.sealer.seal(JSON.stringify(wanted), RETURN_PURPOSE), attributes)
}

export function forgetReturnPath(context: ReturnContext, reply: FastifyReply): void {
  const { name, attributes } = defineReturnCookie(context)
  reply.clearCookie(name, attributes)
}

/**
 * The page that the sign-in of a user returns to: only a page of this server. What somebody chose and typed is in the query,
 * and another user gets the page without it. The portal has its query only for the user who is known to have chosen it.
 */
export function findReturnPath(
  context: ReturnContext,
  request: FastifyRequest,
  userId: string | undefined,
): string | undefined {
  const sealed = request.cookies[defineReturnCookie(context).name] ?? ''
  const text = context.sealer.tryOpen(sealed, RETURN_PURPOSE)
  if (text === undefined) return undefined
  const wanted: WantedPage = JSON.parse(text)
  const { origin } = new URL(context.settings.issuerUrl)
  const url = URL.parse(wanted.path, origin)
  if (url?.origin !== origin) return undefined
  const isBelow = (start: string) => `${url.pathname}/`.startsWith(`${start}/`)
  const isSame = wanted.userId !== undefined && wanted.userId === userId
  if (isBelow(paths.portal)) return isSame ? url.pathname + url.search : paths.portal
  if (!listPages(context).some(isBelow)) return undefined
  return isSame || wanted.userId === undefined ? url.pathname + url.search : url.pathname
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
