import type { FastifyRequest } from 'fastify'

const SAFE_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])

/**
 * Whether another site sent this form (HTTP-3): only `Sec-Fetch-Site` counts and, without it, `Origin`. A request without
 * both comes from a script or a very old browser, and is accepted.
 */
export function isCrossSite(request: FastifyRequest, ownOrigins: readonly string[]): boolean {
  if (SAFE_METHODS.has(request.method)) return false
  const site = request.headers['sec-fetch-site']
  if (site !== undefined) return site !== 'same-origin' && site !== 'none'
  const origin = request.headers.origin
  return origin !== undefined && !isOwn(origin, request, ownOrigins)
}

/** Behind a proxy the configured address counts; the address in use counts too (127.0.0.1 for localhost). */
function isOwn(origin: string, request: FastifyRequest, ownOrigins: readonly string[]): boolean {
  return ownOrigins.includes(origin) || origin === `${request.protocol}://${request.host}`
}
