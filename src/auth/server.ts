import type { FastifyInstance } from 'fastify'
import type { Sealer, Store } from '../store/index.ts'
import { createServer, type Logger, type ServerOptions } from '../web/index.ts'
import { authorizeRoutes } from './authorize/routes.ts'
import { consentRoutes } from './consent/routes.ts'
import type { AuthContext, AuthSettings } from './context.ts'
import { discoveryRoutes } from './discovery/routes.ts'
import { createKeyRing } from './keys/key-ring.ts'
import { keyRoutes } from './keys/routes.ts'
import { launchRoutes } from './launch/routes.ts'
import { loginRoutes } from './login/routes.ts'
import { logoutRoutes } from './logout/routes.ts'
import { paths } from './paths.ts'
import { pickerRoutes } from './picker/routes.ts'
import { portalRoutes } from './portal/routes.ts'
import { styleRoutes } from './style/routes.ts'
import { tokenRoutes } from './token/routes.ts'
import { answerWhileAway } from './while-away.ts'

export interface AuthServerOptions {
  readonly settings: AuthSettings
  readonly store: Store
  readonly sealer: Sealer
  readonly clock?: () => number
  /** For requests to the FHIR server. */
  readonly fetch?: typeof globalThis.fetch
  readonly logger?: Logger
  readonly tls?: ServerOptions['tls']
}

/** A key outlives its retirement by the longest token it signed, and clocks that differ. */
const PUBLISHED_AFTER_MS = 60_000

/** The auth server, not yet listening. `initialize` comes first, once per start. */
export async function authServer(options: AuthServerOptions): Promise<FastifyInstance> {
  const { settings, store, sealer, clock = Date.now, fetch = globalThis.fetch } = options
  const keys = createKeyRing({
    store,
    sealer,
    clock,
    publishedForMs: settings.accessTokenTtlSeconds * 1000 + PUBLISHED_AFTER_MS,
  })
  const context: AuthContext = { settings, store, sealer, keys, clock, fetch }
  const app = await createServer(serverOptions(options, context))
  await app.register(async routes => {
    answerWhileAway(routes, store)
    addRoutes(routes, context)
  })
  return app
}

function addRoutes(app: FastifyInstance, context: AuthContext): void {
  loginRoutes(app, context)
  logoutRoutes(app, context)
  portalRoutes(app, context)
  launchRoutes(app, context)
  authorizeRoutes(app, context)
  pickerRoutes(app, context)
  consentRoutes(app, context)
  tokenRoutes(app, context)
  keyRoutes(app, context.keys)
  discoveryRoutes(app, context.settings)
  styleRoutes(app)
  app.get('/', (_request, reply) => reply.redirect(paths.portal, 302))
}

function serverOptions({ logger, tls }: AuthServerOptions, context: AuthContext): ServerOptions {
  const { settings, store, keys, clock } = context
  return {
    name: 'auth',
    url: settings.issuerUrl,
    clock,
    home: paths.portal,
    openMetrics: settings.openMetrics,
    checks: [
      { name: 'database', check: () => store.ping() },
      { name: 'signing key', check: async () => void (await keys.signing()) },
    ],
    errorStyle: path => (isForClients(path) ? 'oauth' : 'page'),
    // Neither is opened by the login cookie alone: one shows pages first, the other knows no cookie (contract 4).
    acceptsCrossSite: path => path === paths.authorize || path === paths.token,
    ...(logger ? { logger } : {}),
    ...(tls ? { tls } : {}),
    ...(settings.trustProxy === undefined ? {} : { trustProxy: settings.trustProxy }),
  }
}

function isForClients(path: string): boolean {
  return path === paths.token || path === paths.jwks || path.startsWith('/.well-known/')
}
