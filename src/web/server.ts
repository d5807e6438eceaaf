import cookie from '@fastify/cookie'
import formbody from '@fastify/formbody'
import {
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  type FastifyServerOptions,
  fastify,
  LogController,
} from 'fastify'
import { isDatabaseUnavailable } from '../store/index.ts'
import { watchRoutes } from './allowed-methods.ts'
import type { ErrorStyle } from './answers.ts'
import { serveAssets } from './assets.ts'
import { answerClientError, answerConnect } from './client-errors.ts'
import { isCrossSite } from './cross-site.ts'
import { drainUnread } from './drain.ts'
import { prepareDraining } from './draining.ts'
import { setSecurityHeaders } from './headers.ts'
import { type ReadyCheck, serveHealth } from './health.ts'
import { findHostName, namesTwoHosts } from './host.ts'
import { boundJson } from './json.ts'
import { lazyLogger } from './lazy-logger.ts'
import { BODY_BYTES, FORM_BYTES, HEADER_BYTES } from './limits.ts'
import { prepareDoors } from './listen.ts'
import type { Logger } from './logger.ts'
import { serveMetrics } from './metrics.ts'
import { logOutages } from './outage-log.ts'
import { toProblem } from './problems.ts'
import { answerProblem, decorateReply, pathOf, type ReplyOptions } from './reply.ts'
import { readRequestId } from './request-id.ts'
import { TLS_POLICY } from './tls.ts'

export interface ServerOptions {
  /** Names the server in log lines and metrics. */
  readonly name: 'auth' | 'fhir' | 'app'
  /** The address that browsers use, as set. Under https: HSTS. */
  readonly url: string
  /** Silent unless given. */
  readonly logger?: Logger
  readonly clock?: () => number
  /** What `GET /readyz` looks at. */
  readonly checks?: readonly ReadyCheck[]
  /** Shows `GET /metrics` to other hosts as well. */
  readonly openMetrics?: boolean
  readonly trustProxy?: string
  readonly tls?: { readonly cert: string | Buffer; readonly key: string | Buffer }
  readonly bodyLimit?: number
  /** Where the button of an error page leads. */
  readonly home?: string
  /** In which form an address answers with an error; pages unless told. */
  readonly errorStyle?: (path: string) => ErrorStyle
  /** Addresses that accept a POST from another site: those that no cookie opens, and `POST /oauth2/authorize`. */
  readonly acceptsCrossSite?: (path: string) => boolean
  /** Whether a request may name this host in `Host`; every name is accepted unless given. */
  readonly acceptsHost?: (host: string) => boolean
  /** The methods of an address that routes alone do not tell; undefined where they do. */
  readonly allowedMethods?: (path: string) => readonly string[] | undefined
  /** How long a server that is stopped waits for running requests before it cuts them. */
  readonly drainMs?: number
}

const QUIET_ROUTES: ReadonlySet<string | undefined> = new Set([
  '/healthz',
  '/readyz',
  '/metrics',
  '/assets/:name',
])

/** What all three servers have in common. Not yet listening; see `listen`. */
export async function createServer(options: ServerOptions): Promise<FastifyInstance> {
  const app = bareServer(options)
  const methodsOf = watchRoutes(app)
  decorateReply(app, createReplyOptions(options))
  prepareDoors(app)
  prepareDraining(app, options.drainMs)
  addHooks(app, options)
  drainUnread(app)
  addUnknownRoutes(app, path => options.allowedMethods?.(path) ?? methodsOf(path))
  // No cookie opens a FHIR server.
  if (options.name !== 'fhir') await app.register(cookie)
  await app.register(formbody, { bodyLimit: FORM_BYTES })
  app.removeContentTypeParser('text/plain')
  boundJson(app)
  const logOutage = logOutages(app.log, options.clock ?? Date.now)
  app.setErrorHandler(async (error, request, reply) => {
    const problem = toProblem(error, chooseBodyLimit(request, options))
    // fastify would close the connection after a body that it did not read; what is left of it is drained instead.
    reply.removeHeader('connection')
    if (isDatabaseUnavailable(error)) logOutage(error)
    else if (problem.kind === 'unexpected') request.log.error({ err: error }, 'Request failed')
    return reply.sendProblem(problem)
  })
  serveHealth(app, options.checks ?? [], options.clock)
  serveMetrics(app, options.name, options.openMetrics ?? false)
  serveAssets(app)
  return app
}

function bareServer(options: ServerOptions): FastifyInstance {
  return fastify({
    ...logging(options),
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: 'requestId' }),
    genReqId: request => readRequestId(request.headers['x-request-id']),
    bodyLimit: options.bodyLimit ?? BODY_BYTES,
    routerOptions: { maxParamLength: 2048 },
    // A slow sender must not hold a connection for ever.
    requestTimeout: 120_000,
    // What still arrives on a kept connection while closing is answered, by its handler, and the connection then closed.
    return503OnClosing: false,
    clientErrorHandler: answerClientError,
    frameworkErrors: (error, request, reply) => {
      reply.header('x-request-id', request.id)
      setSecurityHeaders(reply, isHttps(options))
      answerProblem(reply, toProblem(error), createReplyOptions(options))
    },
    ...(options.trustProxy === undefined ? {} : { trustProxy: options.trustProxy }),
    ...(options.tls
      ? { https: { ...TLS_POLICY, ...options.tls, maxHeaderSize: HEADER_BYTES } }
      : { http: { maxHeaderSize: HEADER_BYTES } }),
  })
}

/** Without a logger nothing is made for a request to log by. */
function logging({ logger, name }: ServerOptions): FastifyServerOptions {
  if (!logger) return {}
  const own = logger.child({ server: name })
  return { loggerInstance: own, childLoggerFactory: (_logger, bindings) => lazyLogger(own, bindings) }
}

function createReplyOptions({
  clock = Date.now,
  home = '/',
  errorStyle = () => 'page',
}: ServerOptions): ReplyOptions {
  return { clock, home, errorStyle }
}

/** The FHIR servers read forms as they read any other body. */
function chooseBodyLimit(
  { headers }: FastifyRequest,
  { name, bodyLimit = BODY_BYTES }: ServerOptions,
): number {
  const isForm = headers['content-type']?.startsWith('application/x-www-form-urlencoded') ?? false
  return isForm && name !== 'fhir' ? FORM_BYTES : bodyLimit
}

function isHttps({ url }: ServerOptions): boolean {
  return url.startsWith('https:')
}

function addHooks(app: FastifyInstance, options: ServerOptions): void {
  const ownOrigins = [new URL(options.url).origin]
  const https = isHttps(options)
  // With callbacks: these run for every request, and a promise each would be most of what they cost.
  app.addHook('onRequest', (request, reply, done) => {
    reply.header('x-request-id', request.id)
    setSecurityHeaders(reply, https)
    if (namesTwoHosts(request.raw.rawHeaders)) {
      reply.header('connection', 'close')
      reply.sendProblem({ kind: 'malformed', text: 'The request names more than one host.' })
    } else if (!isHostAccepted(request, options))
      reply.sendProblem({ kind: 'unknown-host', url: options.url })
    else if (isCrossSite(request, ownOrigins) && !options.acceptsCrossSite?.(pathOf(request.url)))
      reply.sendProblem({ kind: 'cross-site' })
    else done()
  })
  if (options.logger?.isLevelEnabled('info'))
    app.addHook('onResponse', (request, reply, done) => {
      logRequest(request, reply.statusCode, reply.elapsedTime)
      done()
    })
}

function isHostAccepted({ raw }: FastifyRequest, { acceptsHost }: ServerOptions): boolean {
  if (acceptsHost === undefined) return true
  const host = findHostName(raw)
  return host === undefined || acceptsHost(host)
}

/** 404, or 405 for an address that has other methods: before the body is looked at, which may be of any kind. */
function addUnknownRoutes(app: FastifyInstance, methodsOf: (path: string) => readonly string[]): void {
  const sendUnknown = (request: FastifyRequest, reply: FastifyReply) => {
    const allow = methodsOf(pathOf(request.url))
    const isKnown = allow.length > 0 && !allow.includes(request.method)
    return reply.sendProblem(isKnown ? { kind: 'method-not-allowed', allow } : { kind: 'not-found' })
  }
  app.addHook('onRequest', (request, reply, done) => {
    if (request.is404) sendUnknown(request, reply)
    else done()
  })
  app.setNotFoundHandler(sendUnknown)
  app.server.on('connect', answerConnect)
}

/** One line a request: the path without its query, never a header or a body. */
function logRequest(request: FastifyRequest, status: number, ms: number): void {
  const level = QUIET_ROUTES.has(request.routeOptions.url) ? 'debug' : 'info'
  request.log[level](
    {
      method: request.method,
      path: pathOf(request.url),
      status,
      ms: Math.round(ms * 10) / 10,
      address: request.ip,
    },
    'Request',
  )
}
