import type { FastifyInstance } from 'fastify'
import { paths } from '../paths.ts'
import type { KeyRing } from './key-ring.ts'

/** `GET /oauth2/jwks`. */
export function addKeyRoutes(app: FastifyInstance, keys: KeyRing): void {
  app.get(paths.jwks, async (_request, reply) =>
    reply
      .headers({ 'access-control-allow-origin': '*', 'cache-control': 'public, max-age=60' })
      .send({ keys: await keys.listPublicKeys() }),
  )
}
