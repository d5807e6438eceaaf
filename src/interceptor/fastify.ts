import type { FastifyInstance, FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import type { Refused } from '../fhir/index.ts'
import { ANY_ORIGIN, CONFIGURATION_HEADERS } from './host/configuration.ts'
import { createHostGuard, type HostGuard } from './host/host-guard.ts'
import type { HostOptions } from './host/host-options.ts'

/**
 * A fastify plugin that guards every route of the instance. Register it on the instance that has the FHIR routes. It
 * checks bodies as fastify's parsers leave them.
 */
export function fastifyInterceptor(options: HostOptions): FastifyPluginAsync {
  const plugin = async (app: FastifyInstance) => {
    const host = createHostGuard(options)
    app.addHook('onRequest', async (request, reply) =>
      sendIfRefused(reply, await host.authenticate(request.raw, getUrl(request))),
    )
    app.addHook('preHandler', async (request, reply) => {
      const exchange = { request: request.raw, response: reply.raw, url: getUrl(request), body: request.body }
      return sendIfRefused(reply, await host.authorize(exchange))
    })
    serveConfiguration(app, host)
    app.addHook('onClose', async () => host.close())
  }
  // Without this, fastify would run the hooks in a child instance only.
  return Object.assign(plugin, { [Symbol.for('skip-override')]: true })
}

// Fastify runs hooks only for requests that match a route.
function serveConfiguration(app: FastifyInstance, host: HostGuard): void {
  const path = host.configurationPath
  if (!path?.startsWith(app.prefix)) return
  app.get(path.slice(app.prefix.length), async (request, reply) => {
    const configuration = await host.readConfiguration(request.raw, getUrl(request))
    if (!configuration) return reply.callNotFound()
    if (!configuration.allowed) return sendIfRefused(reply, configuration)
    if (!reply.hasHeader(ANY_ORIGIN[0])) reply.header(...ANY_ORIGIN)
    return reply.headers(CONFIGURATION_HEADERS).send(configuration.body)
  })
}

function getUrl(request: FastifyRequest): string {
  return request.raw.url ?? ''
}

function sendIfRefused(reply: FastifyReply, refused: Refused | undefined): FastifyReply | undefined {
  if (!refused) return undefined
  const body = JSON.stringify(refused.outcome)
  return reply
    .code(refused.status)
    .headers(refused.headers)
    .type('application/fhir+json; charset=utf-8')
    .send(body)
}
