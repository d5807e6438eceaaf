import type { FastifyInstance, FastifyReply } from 'fastify'
import { paths } from '../paths.ts'
import { openidConfiguration, serverMetadata } from './server-metadata.ts'
import { type SmartConfigurationSettings, smartConfiguration } from './smart-configuration.ts'

/** The discovery documents, for anyone. */
export function discoveryRoutes(app: FastifyInstance, settings: SmartConfigurationSettings): void {
  const open = (reply: FastifyReply) =>
    reply.headers({ 'access-control-allow-origin': '*', 'cache-control': 'public, max-age=300' })
  app.get(paths.openidConfiguration, (_request, reply) => open(reply).send(openidConfiguration(settings)))
  app.get(paths.serverMetadata, (_request, reply) => open(reply).send(serverMetadata(settings)))
  app.get(paths.smartConfiguration, (_request, reply) => open(reply).send(smartConfiguration(settings)))
}
