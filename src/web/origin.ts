import type { IncomingMessage } from 'node:http'
import type { FastifyRequest } from 'fastify'

/**
 * Whether a request has more than one `Host` header (RFC 9112, 3.2: such a request is refused). Node silently keeps the
 * first; a proxy may have routed by the second.
 */
export function hasTwoHosts(rawHeaders: readonly string[]): boolean {
  let hosts = 0
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? ''
    if (name.length === HOST.length && name.toLowerCase() === HOST) hosts += 1
  }
  return hosts > 1
}

const HOST = 'host'

const ABSOLUTE = /^https?:\/\/([^/?#]*)/i
const HOST_AND_PORT = /^(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::\d{0,5})?$/i

/**
 * Returns the host of a request without the port, or an empty string if it is malformed. An absolute request target takes
 * precedence over `Host` (RFC 9112, 3.2.2). `X-Forwarded-Host` is ignored: a page can set it. Only an HTTP/1.0 request,
 * which no browser sends, may have no host.
 */
export function findHostName({
  url = '',
  headers,
}: Pick<IncomingMessage, 'url' | 'headers'>): string | undefined {
  const named = url.startsWith('/') ? headers.host : (ABSOLUTE.exec(url)?.[1] ?? headers.host)
  return named === undefined ? undefined : (HOST_AND_PORT.exec(named)?.[1] ?? '')
}

const SAFE_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])

/**
 * Whether another site sent this form (HTTP-3), according to `Sec-Fetch-Site` or, in its absence, `Origin`. A request
 * that has neither comes from a script or a very old browser, and is accepted.
 */
export function isCrossSite(request: FastifyRequest, ownOrigins: readonly string[]): boolean {
  if (SAFE_METHODS.has(request.method)) return false
  const site = request.headers['sec-fetch-site']
  if (site !== undefined) return site !== 'same-origin' && site !== 'none'
  const origin = request.headers.origin
  return origin !== undefined && !isOwn(origin, request, ownOrigins)
}

/** The configured origin (behind a proxy), or that of the request (`127.0.0.1` for `localhost`). */
function isOwn(origin: string, request: FastifyRequest, ownOrigins: readonly string[]): boolean {
  return ownOrigins.includes(origin) || origin === `${request.protocol}://${request.host}`
}
