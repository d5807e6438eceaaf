import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Store } from '../../store/index.ts'
import type { Client } from '../client/client.ts'
import { isRegisteredOrigin, originsOf } from '../client/origins.ts'

/**
 * Lets browser apps call an address from the origins that clients registered (SMART 2.2, CORS), errors included, and
 * without cookies. Which client it is shows only in the request itself: then `limitToOriginsOf` narrows.
 */
export function clientOrigins(store: Store) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    reply.header('vary', 'Origin')
    const { origin } = request.headers
    if (origin !== undefined && (await isRegisteredOrigin(store, origin)))
      reply.header('access-control-allow-origin', origin)
  }
}

export function answerPreflight(_request: FastifyRequest, reply: FastifyReply): FastifyReply {
  return reply
    .headers({
      'access-control-allow-methods': 'POST',
      'access-control-allow-headers': 'Authorization, Content-Type',
      'access-control-max-age': '600',
    })
    .code(204)
    .send()
}

/** Takes the permission back when the origin belongs to another client than the one that asks. */
export function limitToOriginsOf(client: Client, request: FastifyRequest, reply: FastifyReply): void {
  const { origin } = request.headers
  if (origin !== undefined && !originsOf(client).has(origin))
    reply.removeHeader('access-control-allow-origin')
}
