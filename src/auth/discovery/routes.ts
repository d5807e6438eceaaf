import type { FastifyInstance, FastifyReply } from 'fastify'
import type { AuthSettings } from '../context.ts'
import { paths } from '../paths.ts'
import { openidConfiguration, serverMetadata } from './server-metadata.ts'

/** The two discovery documents, for anyone. */
export function discoveryRoutes(app: FastifyInstance, settings: AuthSettings): void {
  const open = (reply: FastifyReply) =>
    reply.headers({ 'access-control-allow-origin': '*', 'cache-control': 'public, max-age=300' })
  app.get(paths.openidConfiguration, (_request, reply) => open(reply).send(openidConfiguration(settings)))
  app.get(paths.serverMetadata, (_request, reply) => open(reply).send(serverMetadata(settings)))
}
