import type { FastifyInstance } from 'fastify'
import { type Auditor, noAudit } from '../audit/index.ts'
import { createHostCheck } from '../config/index.ts'
import type { Sealer, Store } from '../store/index.ts'
import { createServer, type Logger, type ServerOptions } from '../web/index.ts'
import { activityRoutes } from './activity/routes.ts'
import { authorizeRoutes } from './authorize/routes.ts'
import { createKeySets } from './client/assertion/key-sets.ts'
import { consentRoutes } from './consent/routes.ts'
import type { AuthContext, AuthSettings } from './context.ts'
import { discoveryRoutes } from './discovery/routes.ts'
import { endSessionRoutes } from './end-session/routes.ts'
import { introspectRoutes } from './introspect/routes.ts'
import { createKeyRing } from './keys/key-ring.ts'
import { keyRoutes } from './keys/routes.ts'
import { launchRoutes } from './launch/routes.ts'
import { launchContextRoutes } from './launch-contexts/routes.ts'
import { createPasswordCheck } from './login/check-password.ts'
import { loginRoutes } from './login/routes.ts'
import { logoutRoutes } from './logout/routes.ts'
import { manageRoutes } from './manage/routes.ts'
import { createDocumentFetcher, type OutgoingPolicy } from './outgoing/fetch-document.ts'
import { paths } from './paths.ts'
import { pickerRoutes } from './picker/routes.ts'
import { portalRoutes } from './portal/routes.ts'
import { registerRoutes } from './register/routes.ts'
import { revokeRoutes } from './revoke/routes.ts'
import { styleRoutes } from './style/routes.ts'
import { tokenRoutes } from './token/routes.ts'
import { userinfoRoutes } from './userinfo/routes.ts'

export interface AuthServerOptions {
  readonly settings: AuthSettings
  readonly store: Store
  readonly sealer: Sealer
  /** Keeps what happened; nothing is kept unless given. */
  readonly audit?: Auditor
  readonly clock?: () => number
  /** For requests to the FHIR server. */
  readonly fetch?: typeof globalThis.fetch
  readonly logger?: Logger
  readonly tls?: ServerOptions['tls']
  /** The cost of the password hashes that are made. */
  readonly passwordCost?: number
}

/** No cookie is read there: they answer programs, in JSON. */
const FOR_CLIENTS: ReadonlySet<string> = new Set([
  paths.token,
  paths.jwks,
  paths.introspect,
  paths.revoke,
  paths.revocations,
  paths.userinfo,
  paths.register,
  paths.launchContexts,
])

// None is opened by the login cookie alone: two show pages first, the others know no cookie (contract 4).
const OPEN_TO_OTHER_SITES: ReadonlySet<string> = new Set([paths.authorize, paths.endSession, ...FOR_CLIENTS])

/** A key outlives its retirement by the longest token it signed, and clocks that differ. */
const PUBLISHED_AFTER_MS = 60_000
const DAY_MS = 86_400_000

/** The auth server, not yet listening. `initialize` comes first, once per start. */
export async function authServer(options: AuthServerOptions): Promise<FastifyInstance> {
  const { settings, store, sealer, clock = Date.now, fetch = globalThis.fetch } = options
  const keys = createKeyRing({
    store,
    sealer,
    clock,
    publishedForMs: settings.accessTokenTtlSeconds * 1000 + PUBLISHED_AFTER_MS,
    ...(settings.keyMaxAgeDays > 0 ? { maxAgeMs: settings.keyMaxAgeDays * DAY_MS } : {}),
    onFailure: error => options.logger?.error({ err: error }, 'Cannot make the next signing key'),
  })
  const outgoing = createDocumentFetcher(outgoingPolicy(options, clock))
  const keySets = createKeySets({
    fetchDocument: outgoing.fetchDocument,
    clock,
    onUnusable: (url, reason) => options.logger?.warn({ url, reason }, 'Cannot use the key set of a client'),
  })
  const context: AuthContext = {
    ...{ settings, store, sealer, keys, keySets, clock, fetch },
    checkPassword: createPasswordCheck({ store, clock, cost: options.passwordCost }),
    audit: options.audit ?? noAudit,
  }
  const app = await createServer(serverOptions(options, context))
  app.addHook('onClose', () => outgoing.close())
  addRoutes(app, context)
  return app
}

function addRoutes(app: FastifyInstance, context: AuthContext): void {
  loginRoutes(app, context)
  logoutRoutes(app, context)
  portalRoutes(app, context)
  launchRoutes(app, context)
  launchContextRoutes(app, context)
  manageRoutes(app, context)
  activityRoutes(app, context)
  authorizeRoutes(app, context)
  pickerRoutes(app, context)
  consentRoutes(app, context)
  tokenRoutes(app, context)
  keyRoutes(app, context.keys)
  introspectRoutes(app, context)
  revokeRoutes(app, context)
  userinfoRoutes(app, context)
  registerRoutes(app, context)
  endSessionRoutes(app, context)
  discoveryRoutes(app, context.settings)
  styleRoutes(app)
  app.get('/', (_request, reply) => reply.redirect(paths.portal, 302))
}

// The app's key set is ours to reach, wherever the deployment put it.
function outgoingPolicy({ settings, logger }: AuthServerOptions, clock: () => number): OutgoingPolicy {
  return {
    privateAllowed: settings.onLoopback,
    privateHosts: [...settings.privateJwksHosts, new URL(settings.appUrl).hostname],
    clock,
    onFailure: (reason, url) => logger?.warn({ url, reason }, 'Cannot fetch the key set of a client'),
  }
}

function serverOptions({ logger, tls }: AuthServerOptions, context: AuthContext): ServerOptions {
  const { settings, store, keys, clock } = context
  return {
    name: 'auth',
    url: settings.issuerUrl,
    clock,
    home: paths.portal,
    openMetrics: settings.openMetrics,
    acceptsHost: createHostCheck(settings),
    checks: [
      { name: 'database', check: () => store.ping() },
      { name: 'signing key', check: async () => void (await keys.signing()) },
    ],
    errorStyle: path => (isForClients(path) ? 'oauth' : 'page'),
    acceptsCrossSite: path => OPEN_TO_OTHER_SITES.has(path),
    ...(logger ? { logger } : {}),
    ...(tls ? { tls } : {}),
    ...(settings.trustProxy === undefined ? {} : { trustProxy: settings.trustProxy }),
  }
}

function isForClients(path: string): boolean {
  return FOR_CLIENTS.has(path) || path.startsWith('/.well-known/')
}
