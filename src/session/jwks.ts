import type { FastifyInstance } from 'fastify'
import type { AppContext } from './context.ts'

/** `GET /jwks` (contract 3): the public keys that the app proves itself with at auth servers, for anyone. */
export function jwksRoute(app: FastifyInstance, { appKeys }: AppContext): void {
  app.get('/jwks', async (_request, reply) =>
    reply.header('cache-control', 'public, max-age=300').send({ keys: await appKeys.published() }),
  )
}
