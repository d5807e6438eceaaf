import type { FastifyInstance, FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import type { Refused } from '../fhir/index.ts'
import { hostGuard } from './host/guard-exchange.ts'
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
    app.addHook('onClose', async () => host.close())
  }
  // The hooks are for the instance that registers the plugin, not for one of its own.
  return Object.assign(plugin, { [Symbol.for('skip-override')]: true })
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
