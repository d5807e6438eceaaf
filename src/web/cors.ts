import type { FastifyReply, FastifyRequest } from 'fastify'

/** The origins whose pages may read responses: every origin, or those listed. Requests carry no cookies. */
export type Origins = '*' | readonly string[]

const EXPOSED = 'Content-Location, ETag, Last-Modified, Location, WWW-Authenticate, X-Request-Id'
const METHODS = 'GET, HEAD, POST, PUT, PATCH, DELETE'
const HEADERS =
  'Accept, Authorization, Content-Type, If-Match, If-Modified-Since, If-None-Exist, If-None-Match, Prefer, X-Request-Id, X-Security-Context'

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
