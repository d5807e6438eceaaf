import type { FastifyInstance, FastifyReply, FastifyRequest, HTTPMethods } from 'fastify'
import type { FhirAudit } from '../../audit/index.ts'
import { createBodyLimits, findMethods, type Interaction, limits, nameGroup, Work } from '../../fhir/index.ts'
import type { Authenticated, Authenticator, AuthFailure, VersionAccess } from '../../smart/index.ts'
import {
  type Counter,
  createServer,
  type Logger,
  type Origins,
  type ReadyCheck,
  Registry,
  type ServerOptions,
  serveDocuments,
} from '../../web/http/index.ts'
import type { CacheCounts } from '../access-cache.ts'
import type { FhirBackend } from '../backend.ts'
import { openExports } from '../export/open-exports.ts'
import type { ExportOptions } from '../exports.ts'
import { authenticate, authenticateCaller } from './authenticate.ts'
import type { CountingAuthenticator, FhirApi } from './fhir-api.ts'
import { readBodies, readContents } from './read-bodies.ts'
import { respondTo } from './respond.ts'
import { sendResponse } from './send-response.ts'
import { createEntrance, type WayIn } from './way-in.ts'

export interface FhirApiOptions {
  /** The FHIR base as clients know it, without a trailing slash. */
  readonly baseUrl: string
  /** Authenticates requests. Required: an API without one would be open to everybody. */
  readonly guard: Authenticator
  /** Records every decision before the response is sent, and serves AuditEvents in place of the backend. */
  readonly audit?: FhirAudit | undefined
  /** The version that decides about access to old versions; `current` by default. */
  readonly versionAccess?: VersionAccess
  /** Only if bulk exports are offered. */
  readonly exports?: ExportOptions | undefined
  /** The content of `.well-known/smart-configuration`; `metadata` repeats its URLs. */
  readonly smartConfiguration: object | (() => object)
  /** Further public documents, by path. */
  readonly documents?: Readonly<Record<string, object>>
  readonly logger?: Logger
  readonly clock?: () => number
  readonly metrics?: Registry
  /** The checks of `/readyz`. */
  readonly checks?: readonly ReadyCheck[]
  /** The largest request body, in bytes. */
  readonly bodyLimit?: number | undefined
  /** The largest content of a Binary that is sent as it is, in bytes, if the backend takes it as a stream. */
  readonly contentLimit?: number | undefined
  /** The largest number of entries of a transaction; a batch may have twice as many. */
  readonly entryLimit?: number | undefined
  /** Other ways in for requests, beside the FHIR base. */
  readonly ways?: readonly WayIn[]
  /** The origins whose pages may read responses; all by default. */
  readonly origins?: Origins
  /** Options of every server: TLS, proxies, metrics. */
  readonly web?: Pick<ServerOptions, 'tls' | 'trustProxy' | 'metricsAccess' | 'acceptsHost' | 'drainMs'>
}

/** The FHIR HTTP API on a backend, not yet listening. */
export async function createFhirApi(options: FhirApiOptions, backend: FhirBackend): Promise<FastifyInstance> {
  const { baseUrl, guard, audit, logger, checks = [], origins = '*', smartConfiguration } = options
  const { clock = Date.now, versionAccess = 'current', ways = [] } = options
  const bodyLimits = createBodyLimits(options.bodyLimit, options.entryLimit)
  const bodyLimit = bodyLimits.bytes
  // A site that allows larger Bundles allows the work for them.
  const units = limits.WORK_UNITS * Math.max(1, bodyLimits.entries.transaction / limits.TRANSACTION_ENTRIES)
  const registry = options.metrics ?? new Registry()
  const decisions = createDecisionCounter(registry)
  const counting = countDecisions(guard, decisions)
  countLookups(registry, { token: counting.count, access: backend.accessCache.count })
  const basePath = new URL(baseUrl).pathname.replace(/\/$/, '')
  const isFhir = (path: string) => path === basePath || path.startsWith(`${basePath}/`)
  const contentLimit = findContentLimit(options, backend)
  const app = await createServer({
    name: 'fhir',
    url: baseUrl,
    clock,
    bodyLimit,
    largestBody: contentLimit,
    checks,
    metrics: registry,
    errorStyle: path => (isFhir(path) ? 'fhir' : 'api'),
    // A bearer token is sent on purpose; no cookie gives access to this server.
    acceptsCrossSite: isFhir,
    allowedMethods: path =>
      isFhir(path) ? findMethods({ path: path.slice(basePath.length), query: '', headers: {} }) : undefined,
    ...(logger && { logger }),
    ...options.web,
  })
  const api = {
    guard: counting,
    decisions,
    audit,
    backend,
    clock,
    exports: options.exports && openExports(options.exports),
    baseUrl,
    basePath,
    bodyLimits,
    createWork: () => new Work(units),
    contentLimit,
    origins,
    versionAccess,
    smartConfiguration: evaluateLate(smartConfiguration),
  }
  app.decorateRequest('work')
  app.decorateRequest('authenticated', undefined)
  app.decorateRequest('interaction', undefined)
  app.decorateRequest('content', undefined)
  app.decorateRequest('bodyProblem', undefined)
  await app.register(async scope => addRoutes(scope, api), { prefix: basePath })
  serveDocuments(app, options.documents ?? {})
  for (const { path, guard, serve } of ways) {
    const entrance = createEntrance(api, { path, guard: countDecisions(guard, decisions) })
    await app.register(async scope => serve(scope, entrance), { prefix: basePath + path })
  }
  return app
}

/** Short contents are read as bodies. */
function findContentLimit(
  { contentLimit = 0, bodyLimit = limits.BODY_BYTES }: FhirApiOptions,
  { takesContent }: FhirBackend,
): number | undefined {
  const isLong = contentLimit > Math.min(bodyLimit, limits.BODY_BYTES)
  return takesContent && isLong ? contentLimit : undefined
}

export function evaluateLate(configuration: object | (() => object)): () => object {
  return () => (typeof configuration === 'function' ? configuration() : configuration)
}

/** The methods of FHIR's REST API and of preflights. Any other is refused before the token is verified. */
const METHODS: HTTPMethods[] = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']

/** Serves every URL below the FHIR base by one route: `parseInteraction` alone parses URLs. */
function addRoutes(app: FastifyInstance, api: FhirApi): void {
  readBodies(app, api)
  // With a callback: a cached token is verified at once, and a promise would only cost time.
  app.addHook('onRequest', (request, reply, done) => authenticate(api, request, reply, done))
  // The token may expire or be revoked while the body arrives.
  app.addHook('preHandler', (request, reply, done) =>
    request.body === undefined ? done() : authenticateCaller(api, request, reply, done),
  )
  const respond = async (request: FastifyRequest, reply: FastifyReply) =>
    sendResponse(reply, await respondTo(api, request))
  const serve = (scope: FastifyInstance, urls: readonly string[]) => {
    for (const url of urls) scope.route({ method: METHODS, url, handler: respond, exposeHeadRoute: false })
  }
  serve(app, ['/', '/*'])
  if (api.contentLimit !== undefined)
    app.register(async scope => {
      readContents(scope, api)
      serve(scope, ['/Binary', '/Binary/*'])
    })
}

function createDecisionCounter(registry: Registry): Counter {
  return registry.counter({
    name: 'sallyport_decisions_total',
    help: 'Decisions about FHIR requests and entries of Bundles, by outcome and reason. A request that its scopes allow may still be refused for its content, as outside-access.',
    labels: ['outcome', 'reason'],
  })
}

/** Counts every decision: about tokens, and about each interaction of a request. */
function countDecisions(guard: Authenticator, decisions: Counter): CountingAuthenticator {
  const counts = { hits: 0, misses: 0 }
  const counted = new WeakMap<Authenticated, Authenticated>()
  const uncounted = new WeakMap<Authenticated, Authenticated>()

  function countCaller(caller: Authenticated): Authenticated {
    const known = counted.get(caller)
    if (known) return known
    const made: Authenticated = {
      ...caller,
      decide: (interaction, work) => countDecision(caller, interaction, work),
    }
    counted.set(caller, made)
    uncounted.set(made, caller)
    return made
  }

  function countDecision(caller: Authenticated, interaction: Interaction, work: Work) {
    const decision = caller.decide(interaction, work)
    if (decision.allowed) decisions.add(ALLOWED)
    else decisions.add(['refused', nameGroup(decision.reason ?? 'other')])
    return decision
  }

  function countResult(result: AuthFailure | Authenticated): AuthFailure | Authenticated {
    if (result.allowed) return countCaller(result)
    decisions.add(['refused', nameGroup(result.reason ?? 'other')])
    return result
  }

  return {
    count: () => counts,
    mayAllow: (caller, interaction, work) =>
      (uncounted.get(caller) ?? caller).decide(interaction, work).allowed,
    authenticate(authorization) {
      const result = guard.authenticate(authorization)
      if (result instanceof Promise) {
        counts.misses += 1
        return result.then(countResult)
      }
      if (result.allowed) counts.hits += 1
      return countResult(result)
    },
  }
}

const ALLOWED = ['allowed', 'scope']

function countLookups(registry: Registry, caches: Readonly<Record<string, () => CacheCounts>>): void {
  registry.readCounter(
    {
      name: 'sallyport_cache_lookups_total',
      help: 'Lookups in caches by result: hit or miss.',
      labels: ['cache', 'result'],
    },
    () =>
      Object.entries(caches).flatMap(([name, count]) => [
        [count().hits, name, 'hit'] as const,
        [count().misses, name, 'miss'] as const,
      ]),
  )
}
