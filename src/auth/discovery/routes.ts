import type { FastifyInstance, FastifyReply } from 'fastify'
import { paths } from '../paths.ts'
import { type MetadataSettings, openidConfiguration, serverMetadata } from './server-metadata.ts'

/** The two discovery documents, for anyone. */
export function discoveryRoutes(app: FastifyInstance, settings: MetadataSettings): void {
  const open = (reply: FastifyReply) =>
    reply.headers({ 'access-control-allow-origin': '*', 'cache-control': 'public, max-age=300' })
  app.get(paths.openidConfiguration, (_request, reply) => open(reply).send(openidConfiguration(settings)))
  app.get(paths.serverMetadata, (_request, reply) => open(reply).send(serverMetadata(settings)))
}
