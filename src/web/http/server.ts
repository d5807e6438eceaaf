import type { IncomingMessage } from 'node:http'
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
import { isDatabaseUnavailable } from '../../store/index.ts'
import { type Brand, serveAssets, serveBrand } from '../ui/index.ts'
import { setSecurityHeaders } from './headers.ts'
import { prepareReports, type ReadyCheck, serveHealth } from './health.ts'
import { BODY_BYTES, FORM_BYTES, HEADER_BYTES, REQUEST_MS } from './limits.ts'
import {
  type Certificate,
  prepareDraining,
  prepareListeners,
  serveConnectionsInTurn,
  TLS_POLICY,
} from './listen.ts'
import { createChildLogger, createRequestLogger, type Logger, logOutages } from './logger.ts'
import { type MetricsOptions, serveMetrics } from './metrics.ts'
import { answerClientError, answerConnect, toProblem } from './problems.ts'
import { Registry } from './registry.ts'
import type { ErrorStyle } from './reply.ts'
import { decorateReply, type ReplyOptions, sendProblemReply, stripQuery } from './reply.ts'
import { boundJson, drainUnread, findHostName, hasTwoHosts, isCrossSite, readRequestId } from './request.ts'
import { watchRoutes } from './routes.ts'
import { addTracing, findTrace } from './trace.ts'

export interface ServerOptions {
  /** Names the server in log lines and metrics. */
  readonly name: 'auth' | 'fhir' | 'app'
  /** The configured URL of the server. Under https, the server sends HSTS. */
  readonly url: string
  readonly logger?: Logger
  readonly clock?: () => number
  /** The checks of `GET /readyz`. */
  readonly checks?: readonly ReadyCheck[]
  readonly metrics?: Registry
  /** By default only requests from this machine. */
  readonly metricsAccess?: MetricsOptions['access']
  readonly trustProxy?: string
  readonly tls?: Certificate
  readonly bodyLimit?: number
  /** The largest body of all routes, if it is larger than `bodyLimit`. */
  readonly largestBody?: number | undefined
  /** The target of the button of an error page. */
  readonly home?: string
  /** The organization on error pages. */
  readonly brand?: Brand
  /** The top bar of the user who is signed in, for error pages. */
  readonly findBar?: ReplyOptions['findBar']
  /** The format of error responses by path; the default is a page. */
  readonly errorStyle?: (path: string) => ErrorStyle
  /** Whether a path accepts a POST from another site: paths that use no cookie, and `POST /oauth2/authorize`. */
  readonly acceptsCrossSite?: (path: string) => boolean
  /** Whether `Host` may have this name; by default every name is accepted. */
  readonly acceptsHost?: (host: string) => boolean
  /** The methods of a path that its routes alone do not determine, else undefined. */
  readonly allowedMethods?: (path: string) => readonly string[] | undefined
  /** Origins whose pages may show the pages of this server in a frame; by default none. */
  readonly frameOrigins?: readonly string[]
  /** Time for running requests to finish before a stopping server aborts them. */
  readonly drainMs?: number
}

const QUIET_ROUTES: ReadonlySet<string | undefined> = new Set([
  '/healthz',
  '/readyz',
  '/metrics',
  '/assets/:name',
  '/brand/:name',
])

/** Creates a server with the common routes and hooks. It does not listen yet; see `listen`. */
export async function createServer(options: ServerOptions): Promise<FastifyInstance> {
  const app = createFastify(options)
  const listMethods = watchRoutes(app)
  decorateReply(app, createReplyOptions(options))
  // The FHIR server uses no cookies. Before the other hooks, which may send an error page for the user who is signed in.
  if (options.name !== 'fhir') await app.register(cookie)
  prepareListeners(app)
  prepareDraining(app, options.drainMs)
  prepareReports(app)
  addTracing(app, options.name)
  addHooks(app, options)
  drainUnread(app, options.largestBody)
  addUnknownRoutes(app, options, path => options.allowedMethods?.(path) ?? listMethods(path))
  await app.register(formbody, { bodyLimit: FORM_BYTES })
  app.removeContentTypeParser('text/plain')
  boundJson(app)
  const logOutage = logOutages(
    details => app.log.error(details, 'Database unavailable: requests get 503'),
    options.clock,
  )
  app.setErrorHandler(async (error, request, reply) => {
    const problem = toProblem(error, chooseBodyLimit(request, options))
    // fastify would close the connection after a body that it did not read; `drainUnread` reads the rest instead.
    reply.removeHeader('connection')
    if (isDatabaseUnavailable(error)) logOutage(error)
    else if (problem.kind === 'unexpected') request.log.error({ err: error }, 'Request failed')
    return reply.sendProblem(problem)
  })
  serveHealth(app, options.checks ?? [], options.clock)
  serveMetrics(app, {
    server: options.name,
    registry: options.metrics ?? new Registry(),
    access: options.metricsAccess ?? 'loopback',
  })
  serveAssets(app)
  if (options.brand) serveBrand(app, options.brand)
  return app
}

function createFastify(options: ServerOptions): FastifyInstance {
  const app = fastify({
    ...makeLogOptions(options),
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: 'requestId' }),
    genReqId: request => readRequestId(request.headers['x-request-id']),
    bodyLimit: options.bodyLimit ?? BODY_BYTES,
    routerOptions: { maxParamLength: 2048 },
    // A slow sender must not hold a connection open for ever.
    requestTimeout: REQUEST_MS,
    // While the server closes, it still serves requests on open connections, and closes each after the response.
    return503OnClosing: false,
    clientErrorHandler: answerClientError,
    frameworkErrors: (error, request, reply) => {
      reply.header('x-request-id', request.id)
      setSecurityHeaders(reply, isHttps(options))
      sendProblemReply(reply, toProblem(error), createReplyOptions(options))
    },
    ...(options.trustProxy === undefined ? {} : { trustProxy: options.trustProxy }),
    ...(options.tls
      ? { https: { ...TLS_POLICY, ...options.tls, maxHeaderSize: HEADER_BYTES } }
      : { http: { maxHeaderSize: HEADER_BYTES } }),
  })
  serveConnectionsInTurn(app)
  return app
}

function makeLogOptions({ logger, name }: ServerOptions): FastifyServerOptions {
  if (!logger) return {}
  const own = createChildLogger(logger, { server: name })
  return {
    loggerInstance: own,
    childLoggerFactory: (_logger, bindings, _options, raw) =>
      createRequestLogger(own, () => ({ ...bindings, ...describeTrace(raw) })),
  }
}

function describeTrace(raw: IncomingMessage): Readonly<Record<string, string>> {
  const trace = findTrace(raw)
  return trace ? { trace_id: trace.traceId, span_id: trace.spanId } : {}
}

function createReplyOptions({
  clock = Date.now,
  home = '/',
  errorStyle = () => 'page',
  frameOrigins = [],
  brand,
  findBar,
}: ServerOptions): ReplyOptions {
  return { clock, home, errorStyle, frameOrigins, brand, findBar }
}

/** For the FHIR server, a form has the same limit as any other body. */
function chooseBodyLimit({ headers, routeOptions }: FastifyRequest, { name }: ServerOptions): number {
  const isForm = headers['content-type']?.startsWith('application/x-www-form-urlencoded') ?? false
  return isForm && name !== 'fhir' ? FORM_BYTES : (routeOptions.bodyLimit ?? BODY_BYTES)
}

function isHttps({ url }: ServerOptions): boolean {
  return url.startsWith('https:')
}

function addHooks(app: FastifyInstance, options: ServerOptions): void {
  const ownOrigins = [new URL(options.url).origin]
  const https = isHttps(options)
  // Callbacks, because these hooks run for every request: promises would be most of their cost.
  app.addHook('onRequest', (request, reply, done) => {
    reply.header('x-request-id', request.id)
    setSecurityHeaders(reply, https)
    if (hasTwoHosts(request.raw.rawHeaders)) {
      reply.header('connection', 'close')
      reply.sendProblem({ kind: 'malformed', text: 'The request has more than one Host header.' })
    } else if (!isHostAccepted(request, options))
      reply.sendProblem({ kind: 'unknown-host', url: options.url })
    else if (isCrossSite(request, ownOrigins) && !options.acceptsCrossSite?.(stripQuery(request.url)))
      reply.sendProblem({ kind: 'cross-site' })
    else done()
  })
  const { logger } = options
  if (logger)
    app.addHook('onResponse', (request, reply, done) => {
      if (logger.isLevelEnabled('info')) logRequest(request, reply.statusCode, reply.elapsedTime)
      done()
    })
}

function isHostAccepted({ raw }: FastifyRequest, { acceptsHost }: ServerOptions): boolean {
  if (acceptsHost === undefined) return true
  const host = findHostName(raw)
  return host === undefined || acceptsHost(host)
}

/** Sends 404, or 405 for a path that has other methods, before the body is parsed. A page is found with a slash after it. */
function addUnknownRoutes(
  app: FastifyInstance,
  { errorStyle = () => 'page' }: ServerOptions,
  listMethods: (path: string) => readonly string[],
): void {
  const sendUnknown = (request: FastifyRequest, reply: FastifyReply) => {
    const path = stripQuery(request.url)
    const page = /^(\/(?![/\\]).*[^/])\/$/.exec(path)?.[1]
    const isPage = request.method === 'GET' && page !== undefined && errorStyle(page) === 'page'
    if (isPage && listMethods(page).includes('GET'))
      return reply.redirect(page + request.url.slice(path.length), 302)
    const allow = listMethods(path)
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

/** Logs one line per request: the path without its query, never a header or a body. */
function logRequest(request: FastifyRequest, status: number, ms: number): void {
  const level = QUIET_ROUTES.has(request.routeOptions.url) ? 'debug' : 'info'
  request.log[level](
    {
      method: request.method,
      path: stripQuery(request.url),
      status,
      ms: Math.round(ms * 10) / 10,
      address: request.ip,
    },
    'Request',
  )
}
