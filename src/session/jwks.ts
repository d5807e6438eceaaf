import type { FastifyInstance } from 'fastify'
import type { AppContext } from './context.ts'

/** `GET /jwks` (APP-7): the public keys with which the app authenticates to auth servers. */
export function addJwksRoute(app: FastifyInstance, { appKeys }: AppContext): void {
  app.get('/jwks', async (_request, reply) =>
    reply.header('cache-control', 'public, max-age=300').send({ keys: await appKeys.published() }),
  )
}
