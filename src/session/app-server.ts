import type { FastifyInstance } from 'fastify'
import { type Auditor, noAudit } from '../audit/index.ts'
import { createHostCheck } from '../config/index.ts'
import type { Sealer, Store } from '../store/index.ts'
import { cookiePlan, createServer, type Logger, type ServerOptions } from '../web/index.ts'
import { docsRoute } from './api/docs-page.ts'
import { addApiRoutes } from './api/routes.ts'
import type { AppContext, AppSettings } from './context.ts'
import { addDemoRoute } from './demo/route.ts'
import { addJwksRoute } from './jwks.ts'
import { addLaunchRoutes } from './launch/routes.ts'
import { AUTH_SERVER_TIMEOUT_MS } from './limits.ts'
import { logoutRoutes } from './logout.ts'
import { createAppKeys } from './oauth/app-key.ts'
import { createDiscovery } from './oauth/discovery.ts'

export interface AppServerOptions
  extends AppSettings,
    Pick<ServerOptions, 'tls' | 'openMetrics' | 'drainMs'> {
  readonly store: Store
  readonly sealer: Sealer
  /** Keeps what happened to sessions; nothing is kept unless given. */
  readonly audit?: Auditor
  readonly clock?: () => number
  readonly fetch?: typeof fetch
  readonly logger?: Logger
  readonly trustProxy?: string | undefined
}

/** The app server: launch, session API and demo pages. It does not listen yet. */
export async function createAppServer(options: AppServerOptions): Promise<FastifyInstance> {
  const { store, clock = Date.now, logger, trustProxy, tls, openMetrics, drainMs } = options
  const app = await createServer({
    name: 'app',
    url: options.appUrl,
    clock,
    acceptsHost: createHostCheck(options),
    checks: [{ name: 'database', check: () => store.ping() }],
    errorStyle: path => (path === '/api' || path.startsWith('/api/') ? 'api' : 'page'),
    ...(logger ? { logger } : {}),
    ...(trustProxy === undefined ? {} : { trustProxy }),
    ...(tls ? { tls } : {}),
    ...(openMetrics === undefined ? {} : { openMetrics }),
    ...(drainMs === undefined ? {} : { drainMs }),
  })
  const context = contextOf(options, app)
  addJwksRoute(app, context)
  addLaunchRoutes(app, context)
  logoutRoutes(app, context)
  addApiRoutes(app, context)
  docsRoute(app, context)
  addDemoRoute(app, context)
  return app
}

function contextOf(options: AppServerOptions, app: FastifyInstance): AppContext {
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
    sessionCookie: cookiePlan(options.appUrl, 'sallyport-app'),
    renewals: new Map(),
    awaySince: new Map(),
  }
}
