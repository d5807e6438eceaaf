import type { FastifyInstance } from 'fastify'
import { type Auditor, noAudit } from '../audit/index.ts'
import { LruMap } from '../cache/index.ts'
import { createHostCheck } from '../config/index.ts'
import type { Sealer, Store } from '../store/index.ts'
import { createServer, type Logger, type ServerOptions } from '../web/http/index.ts'
import { addDocsRoute } from './api/openapi.ts'
import { addApiRoutes } from './api/routes.ts'
import type { AppSettings } from './context.ts'
import { addDemoRoutes } from './demo/routes.ts'
import { addLaunchRoutes } from './launch/routes.ts'
import { AUTH_SERVER_TIMEOUT_MS, SHOWN_PATIENTS } from './limits.ts'
import { addLogoutRoutes } from './logout.ts'
import { createAppKeys } from './oauth/app-key.ts'
import type { AppContext } from './oauth/context.ts'
import { createDiscovery } from './oauth/discovery.ts'

export interface AppServerOptions
  extends AppSettings,
    Pick<ServerOptions, 'tls' | 'metricsAccess' | 'drainMs'> {
  readonly store: Store
  readonly sealer: Sealer
  readonly audit?: Auditor
  readonly clock?: () => number
  readonly fetch?: typeof fetch
  readonly logger?: Logger
  readonly trustProxy?: string | undefined
}

/** Creates the app server: launch, session API and demo pages. It does not listen yet. */
export async function createAppServer(options: AppServerOptions): Promise<FastifyInstance> {
  const { store, clock = Date.now, logger, trustProxy, tls, metricsAccess, drainMs } = options
  const app = await createServer({
    name: 'app',
    url: options.appUrl,
    clock,
    acceptsHost: createHostCheck(options),
    frameOrigins: options.app.frameOrigins,
    checks: [{ name: 'database', check: () => store.ping() }],
    errorStyle: path => (path === '/api' || path.startsWith('/api/') ? 'api' : 'page'),
    ...(logger ? { logger } : {}),
    ...(trustProxy === undefined ? {} : { trustProxy }),
    ...(tls ? { tls } : {}),
    ...(metricsAccess === undefined ? {} : { metricsAccess }),
    ...(drainMs === undefined ? {} : { drainMs }),
  })
  const context = createContext(options, app)
  addJwksRoute(app, context)
  addLaunchRoutes(app, context)
  addLogoutRoutes(app, context)
  addApiRoutes(app, context)
  addDocsRoute(app)
  addDemoRoutes(app, context)
  return app
}

function createContext(options: AppServerOptions, app: FastifyInstance): AppContext {
  const { store, sealer, clock = Date.now, fetch = globalThis.fetch } = options
  const timeoutMs = options.app.timeoutSeconds * 1000
  const authTimeoutMs = Math.min(timeoutMs, AUTH_SERVER_TIMEOUT_MS)
  return {
    settings: options,
    store,
    sealer,
    audit: options.audit ?? noAudit,
    clock,
    fetch,
    timeoutMs,
    authTimeoutMs,
    log: app.log,
    discovery: createDiscovery({ fetch, clock, timeoutMs: authTimeoutMs }),
    appKeys: createAppKeys({ store, sealer, clock }),
    renewals: new Map(),
    shownPatients: new LruMap(SHOWN_PATIENTS),
    reportedUses: new LruMap(SHOWN_PATIENTS),
    unreachableSince: new Map(),
  }
}

/** `GET /jwks` (APP-7): the public keys with which the app authenticates to auth servers. */
function addJwksRoute(app: FastifyInstance, { appKeys }: AppContext): void {
  app.get('/jwks', async (_request, reply) =>
    reply.header('cache-control', 'public, max-age=300').send({ keys: await appKeys.published() }),
  )
}
