import type { CookieSerializeOptions } from '@fastify/cookie'
import type { FastifyReply, FastifyRequest } from 'fastify'

export interface PagePolicy {
  /** URLs of other sites to which a form of this page may redirect: `POST /portal/launch` redirects to the client. */
  readonly formTargets?: readonly string[]
  /** URLs of images of other sites, such as the logo of an app. */
  readonly images?: readonly string[]
  /** Origins of the pages that may show this one in a frame; by default none. */
  readonly frameOrigins?: readonly string[]
}

const NO_FRAMES = "frame-ancestors 'none'"

/** Creates the content security policy of a page: own styles, scripts and images, no inline code. */
export function createPagePolicy({
  formTargets = [],
  images = [],
  frameOrigins = [],
}: PagePolicy = {}): string {
  return [
    // First: of two directives with one name the first counts, and those below name URLs that clients registered.
    frameOrigins.length === 0 ? NO_FRAMES : listSources('frame-ancestors', frameOrigins, 'origin'),
    "default-src 'none'",
    "style-src 'self'",
    "script-src 'self'",
    listSources("img-src 'self' data:", images, 'path'),
    "connect-src 'self'",
    listSources("form-action 'self'", formTargets, 'origin'),
    "base-uri 'none'",
  ].join('; ')
}

const DATA_POLICY = `${NO_FRAMES}; default-src 'none'; base-uri 'none'`

function listSources(directive: string, urls: readonly string[], part: 'origin' | 'path'): string {
  return [directive, ...new Set(urls.flatMap(url => findSourceExpression(url, part) ?? []))].join(' ')
}

/**
 * Returns the source expression for the origin or the path of a URL, or undefined if the URL has none. Every URL in a
 * policy goes through this function: `;` and `,` are legal in the host of a URL and would end the directive or the
 * policy, and `*` is a wildcard.
 */
function findSourceExpression(text: string, part: 'origin' | 'path'): string | undefined {
  const url = URL.parse(text)
  if (url === null) return undefined
  // A private-use scheme (`com.example.app:/callback`) has no origin: the scheme is the source.
  if (/^[a-z][a-z0-9+-]*(\.[a-z0-9+-]+)+:$/.test(url.protocol)) return url.protocol
  if (!/^https?:$/.test(url.protocol) || !isPlainHost(url.hostname)) return undefined
  return part === 'origin'
    ? url.origin
    : `${url.origin}${url.pathname.replace(/[^\w.~/%-]/g, character => encodeURIComponent(character))}`
}

/** Whether a host is a plain host name or an IP literal, as `URL.hostname` writes it. */
export function isPlainHost(hostname: string): boolean {
  return /^(?:[a-z0-9_-]+(?:\.[a-z0-9_-]+)*\.?|\[[0-9a-f:.]+\])$/.test(hostname)
}

/**
 * Sets the default headers of every response; a page replaces the policies. `no-referrer`, because URLs contain launch
 * tokens and codes; `no-store`, because most responses are about a patient.
 */
export function setSecurityHeaders(reply: FastifyReply, https: boolean): void {
  reply
    .header('content-security-policy', DATA_POLICY)
    // For browsers that do not know frame-ancestors.
    .header('x-frame-options', 'DENY')
    .header('referrer-policy', 'no-referrer')
    .header('x-content-type-options', 'nosniff')
    .header('cache-control', 'no-store')
  if (https) reply.header('strict-transport-security', 'max-age=31536000')
}

export interface CookieDefinition {
  readonly name: string
  readonly attributes: CookieSerializeOptions
}

/**
 * Defines a cookie of the server at `serverUrl`. Under https its name has the prefix `__Host-`. `SameSite` is Lax: with
 * Strict, browsers would not send it with an authorization request or a callback, which come from another site. A browser
 * that has too many cookies for a host removes those of high `Priority` last.
 *
 * In a frame of another site, browsers send only cookies with `SameSite=None`. `Partitioned` limits such a cookie to the
 * site of the page around the frame.
 */
export function defineCookie(
  serverUrl: string,
  name: string,
  { isFramed = false }: { readonly isFramed?: boolean } = {},
): CookieDefinition {
  const https = serverUrl.startsWith('https:')
  const site = isFramed
    ? ({ sameSite: 'none', secure: true, partitioned: true } as const)
    : ({ sameSite: 'lax', secure: https } as const)
  return {
    name: https ? `__Host-${name}` : name,
    attributes: { httpOnly: true, path: '/', priority: 'high', ...site },
  }
}

/** The origins whose pages may read responses: every origin, or those listed. Requests carry no cookies. */
export type Origins = '*' | readonly string[]

const EXPOSED =
  'Content-Location, ETag, Expires, Last-Modified, Location, Retry-After, WWW-Authenticate, X-Progress, X-Request-Id'
const METHODS = 'GET, HEAD, POST, PUT, PATCH, DELETE'
const HEADERS =
  'Accept, Authorization, Content-Type, If-Match, If-Modified-Since, If-None-Exist, If-None-Match, Prefer, X-Provenance, X-Request-Id, X-Security-Context'

/** Allows pages of the given origins to read the response. Pages of any origin may read public documents (BEARER-3). */
export function setCors(
  request: FastifyRequest,
  reply: FastifyReply,
  origins: Origins,
  isPublic: boolean,
): void {
  const { origin } = request.headers
  if (origin === undefined) return
  const allowed = origins === '*' || isPublic ? '*' : origins.includes(origin) ? origin : undefined
  if (allowed !== '*') reply.header('vary', 'Origin')
  if (allowed === undefined) return
  reply.header('access-control-allow-origin', allowed).header('access-control-expose-headers', EXPOSED)
}

/** Answers CORS preflights, which carry no token (BEARER-3). */
export function answerPreflight(reply: FastifyReply): FastifyReply {
  return reply
    .code(204)
    .header('access-control-allow-methods', METHODS)
    .header('access-control-allow-headers', HEADERS)
    .header('access-control-max-age', '600')
    .header('allow', METHODS)
    .send()
}
