import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Store } from '../../store/index.ts'
import type { Client } from '../client/client.ts'
import { isRegisteredOrigin, listOrigins } from '../client/origins.ts'

/**
 * Allows requests from the registered origins of all clients (SMART 2.2, CORS), without cookies. Once the client is known,
 * `limitToClientOrigins` limits this to its own origins.
 */
export function createOriginHook(store: Store) {
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

/** Removes the header if the origin belongs to another client. */
export function limitToClientOrigins(client: Client, request: FastifyRequest, reply: FastifyReply): void {
  const { origin } = request.headers
  if (origin !== undefined && !listOrigins(client).has(origin))
    reply.removeHeader('access-control-allow-origin')
}
