import type { FastifyInstance, FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import type { Refused } from '../fhir/index.ts'
import { ANY_ORIGIN, CONFIGURATION_HEADERS } from './host/configuration.ts'
import { type HostGuard, hostGuard } from './host/guard-exchange.ts'
import type { HostOptions } from './host/host.ts'

/**
 * A fastify plugin that guards every route of the instance it is registered on: register it where the FHIR routes
 * are, and only there. Bodies are judged as fastify's parsers leave them.
 */
export function fastifyInterceptor(options: HostOptions): FastifyPluginAsync {
  const plugin = async (app: FastifyInstance) => {
    const host = hostGuard(options)
    app.addHook('onRequest', async (request, reply) =>
      answer(reply, await host.admit(request.raw, urlOf(request))),
    )
    app.addHook('preHandler', async (request, reply) => {
      const exchange = { request: request.raw, response: reply.raw, url: urlOf(request), body: request.body }
      return answer(reply, await host.guard(exchange))
    })
    tellConfiguration(app, host)
    app.addHook('onClose', async () => host.close())
  }
  // The hooks are for the instance that registers the plugin, not for one of its own.
  return Object.assign(plugin, { [Symbol.for('skip-override')]: true })
}

// A route, since hooks do not run where there is none.
function tellConfiguration(app: FastifyInstance, host: HostGuard): void {
  const path = host.configurationPath
  if (!path?.startsWith(app.prefix)) return
  app.get(path.slice(app.prefix.length), async (request, reply) => {
    const told = await host.configuration(request.raw, urlOf(request))
    if (!told) return reply.callNotFound()
    if (!told.allowed) return answer(reply, told)
    if (!reply.hasHeader(ANY_ORIGIN[0])) reply.header(...ANY_ORIGIN)
    return reply.headers(CONFIGURATION_HEADERS).send(told.body)
  })
}

function urlOf(request: FastifyRequest): string {
  return request.raw.url ?? ''
}

function answer(reply: FastifyReply, refused: Refused | undefined): FastifyReply | undefined {
  if (!refused) return undefined
  const body = JSON.stringify(refused.outcome)
  return reply
    .code(refused.status)
    .headers(refused.headers)
    .type('application/fhir+json; charset=utf-8')
    .send(body)
}
