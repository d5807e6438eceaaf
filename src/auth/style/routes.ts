import type { FastifyInstance } from 'fastify'
import { styleJson, stylePath } from './smart-style.ts'

/** Serves `smart_style_url`, which is public. */
export function addStyleRoutes(app: FastifyInstance): void {
  app.get(stylePath, (_request, reply) =>
    reply
      .type('application/json; charset=utf-8')
      .header('cache-control', 'public, max-age=31536000, immutable')
      .header('access-control-allow-origin', '*')
      .send(styleJson),
  )
}
