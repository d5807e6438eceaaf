import type { IncomingMessage, ServerResponse } from 'node:http'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { isRecord, parseJson } from '../core/index.ts'
import type { Refused } from '../fhir/index.ts'
import { serveInTurn } from '../turns/index.ts'
import { getAuthorization } from './host/check-exchange.ts'
import { sendRefusal } from './host/check-response.ts'
import { ANY_ORIGIN, CONFIGURATION_HEADERS } from './host/configuration.ts'
import { createHostGuard, type HostGuard } from './host/host-guard.ts'
import { setRequestId } from './host/request-id.ts'
import { describeUnreadable } from './host/unreadable.ts'
import type { HostOptions } from './interceptor.ts'

/** A request of express or connect: Node's own with the mount path and the parsed body. */
interface MountedRequest extends IncomingMessage {
  readonly baseUrl?: string
  readonly body?: unknown
  /** In express; it considers `trust proxy`. */
  readonly ip?: string | undefined
}

type Next = (error?: unknown) => void

export interface Middleware {
  (request: MountedRequest, response: ServerResponse, next: Next): void
  /**
   * Error middleware, to be mounted after the interceptor: a body that the parser cannot read gets an OperationOutcome instead of the
   * HTML page of express.
   */
  handleError(error: unknown, request: MountedRequest, response: ServerResponse, next: Next): void
  /** Stops refreshing the key set. */
  close(): void
}

/**
 * Middleware for express, connect and compatible frameworks. Mount it at the FHIR base, after the body parser, because
 * writes are checked by their content, and before the routes.
 */
export function expressInterceptor(options: HostOptions): Middleware {
  const host = createHostGuard(options)
  const handleRequest = async (request: MountedRequest, response: ServerResponse, next: Next) => {
    setRequestId(request, response)
    const url = getMountedUrl(request)
    const configuration = await host.readConfiguration(request, url)
    if (configuration?.allowed) return void sendConfiguration(response, configuration.body)
    const refused =
      configuration ??
      (await host.authorize({ request, response, url, body: request.body, address: request.ip }))
    if (refused) sendRefusal(response, refused)
    else next()
  }
  return Object.assign(
    (request: MountedRequest, response: ServerResponse, next: Next) => {
      serveInTurn(request, response, () => void handleRequest(request, response, next).catch(next))
    },
    {
      // Express recognizes error middleware by its four parameters.
      handleError(error: unknown, request: MountedRequest, response: ServerResponse, next: Next) {
        const unreadable = describeUnreadable(error)
        if (!unreadable || response.headersSent) return next(error)
        setRequestId(request, response)
        const exchange = { request, response, url: getMountedUrl(request), address: request.ip }
        host
          .authenticate(exchange)
          .then(refused => void sendRefusal(response, refused ?? host.refuseUnreadable(request, unreadable)))
          .catch(next)
      },
      close: () => host.close(),
    },
  )
}

function getMountedUrl({ baseUrl = '', url = '' }: MountedRequest): string {
  return `${baseUrl}${url}`
}

function sendConfiguration(response: ServerResponse, body: string): void {
  if (!response.hasHeader(ANY_ORIGIN[0])) response.setHeader(...ANY_ORIGIN)
  response.writeHead(200, CONFIGURATION_HEADERS).end(body)
}

/** A plugin for `register`. Its type names nothing of fastify, which only some hosts have installed. */
export type FastifyPlugin = (app: object) => Promise<void>

/**
 * A fastify plugin that guards every route of the instance. Register it on the instance that has the FHIR routes. It
 * checks bodies as fastify's parsers leave them.
 */
export function fastifyInterceptor(options: HostOptions): FastifyPlugin {
  const plugin = async (app: FastifyInstance) => {
    const host = createHostGuard(options)
    app.addHook('onRequest', (request, reply, done) => serveInTurn(request.raw, reply.raw, done))
    app.addHook('onRequest', async (request, reply) => {
      setRequestId(request.raw, reply.raw)
      return sendIfRefused(reply, await host.authenticate(makeExchange(request, reply)))
    })
    app.addHook('preHandler', async (request, reply) =>
      sendIfRefused(reply, await host.authorize({ ...makeExchange(request, reply), body: request.body })),
    )
    answerUnreadable(app, host)
    serveConfiguration(app, host)
    app.addHook('onClose', async () => host.close())
  }
  // Without this, fastify would run the hooks in a child instance only.
  return Object.assign(plugin as FastifyPlugin, { [Symbol.for('skip-override')]: true })
}

/** Replaces fastify's own error for a request that it cannot read. What an error handler of the host sends stays. */
function answerUnreadable(app: FastifyInstance, host: HostGuard): void {
  const unreadable = new WeakMap<FastifyRequest, Refused>()
  app.addHook('onError', async (request, _reply, error) => {
    const isDecided = getAuthorization(request.raw) !== undefined
    const refused = isDecided ? undefined : describeUnreadable(error)
    if (refused) unreadable.set(request, host.refuseUnreadable(request.raw, refused))
  })
  app.addHook('onSend', async (request, reply, payload) => {
    const refused = unreadable.get(request)
    if (!refused || !isOfFastify(payload)) return payload
    reply.type(FHIR_JSON)
    return JSON.stringify(refused.outcome)
  })
}

/** Whether it is `{"statusCode":400,"code":"FST_…","error":"Bad Request","message":"…"}`. */
function isOfFastify(payload: unknown): boolean {
  const body = typeof payload === 'string' ? parseJson(payload) : undefined
  return isRecord(body) && typeof body.statusCode === 'number' && typeof body.message === 'string'
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

function makeExchange(request: FastifyRequest, reply: FastifyReply) {
  return { request: request.raw, response: reply.raw, url: getUrl(request), address: request.ip }
}

function getUrl(request: FastifyRequest): string {
  return request.raw.url ?? ''
}

const FHIR_JSON = 'application/fhir+json; charset=utf-8'

function sendIfRefused(reply: FastifyReply, refused: Refused | undefined): FastifyReply | undefined {
  if (!refused) return undefined
  const body = JSON.stringify(refused.outcome)
  return reply.code(refused.status).headers(refused.headers).type(FHIR_JSON).send(body)
}
