import type { FastifyInstance, FastifyReply } from 'fastify'
import { paths } from '../paths.ts'
import { buildOpenidConfiguration, buildServerMetadata } from './server-metadata.ts'
import { buildSmartConfiguration, type SmartConfigurationSettings } from './smart-configuration.ts'

/** The public discovery documents. */
export function addDiscoveryRoutes(app: FastifyInstance, settings: SmartConfigurationSettings): void {
  const allowEveryone = (reply: FastifyReply) =>
    reply.headers({ 'access-control-allow-origin': '*', 'cache-control': 'public, max-age=300' })
  app.get(paths.openidConfiguration, (_request, reply) =>
    allowEveryone(reply).send(buildOpenidConfiguration(settings)),
  )
  app.get(paths.serverMetadata, (_request, reply) => allowEveryone(reply).send(buildServerMetadata(settings)))
  app.get(paths.smartConfiguration, (_request, reply) =>
    allowEveryone(reply).send(buildSmartConfiguration(settings)),
  )
}
