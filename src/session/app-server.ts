import type { FastifyInstance } from 'fastify'
import { type Auditor, noAudit } from '../audit/index.ts'
import { createHostCheck } from '../config/index.ts'
import type { Sealer, Store } from '../store/index.ts'
import { cookiePlan, createServer, type Logger, type ServerOptions } from '../web/index.ts'
import { askApi } from './api/ask.ts'
import { docsRoute } from './api/docs-page.ts'
import { patientRow } from './api/patient.ts'
import { addApiRoutes } from './api/routes.ts'
import { openVisit } from './api/visit.ts'
import type { AppContext, AppSettings } from './context.ts'
import { findWholeFailure, loadRecord } from './demo/load-record.ts'
import { recordPage } from './demo/page.ts'
import { failurePage } from './demo/states.ts'
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

/** `GET /jwks` (APP-7): the public keys with which the app authenticates to auth servers. */
function addJwksRoute(app: FastifyInstance, { appKeys }: AppContext): void {
  app.get('/jwks', async (_request, reply) =>
    reply.header('cache-control', 'public, max-age=300').send({ keys: await appKeys.published() }),
  )
}

/** `/`: the demo app. Loading it asks the session API, and so counts as use of the session. */
function addDemoRoute(app: FastifyInstance, context: AppContext): void {
  // An open page asks whether its record may still be shown, by reading the patient. That is no use of the session.
  app.head('/', async (request, reply) => {
    const visit = await openVisit(context, request, { extendsSession: false })
    const patient = visit.ok ? await askApi(patientRow, visit.value) : visit
    const isShown = patient.ok || patient.failure.kind === 'missing-scope'
    const status = isShown ? 200 : failurePage({ context, reference: request.id }, patient.failure).status
    return reply.code(status).send()
  })

  app.get('/', async (request, reply) => {
    const visit = await openVisit(context, request, { extendsSession: true })
    if (!visit.ok) {
      const { page, status } = failurePage({ context, reference: request.id }, visit.failure)
      return reply.sendPage(page, { status })
    }
    const record = await loadRecord(visit.value)
    const failure = findWholeFailure(record)
    if (!failure) return reply.sendPage(recordPage(visit.value, record))
    const { fhirBaseUrl } = visit.value.session
    const { page, status } = failurePage({ context, reference: request.id, fhirBaseUrl }, failure)
    return reply.sendPage(page, { status })
  })
}
