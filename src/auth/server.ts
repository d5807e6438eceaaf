import type { FastifyInstance } from 'fastify'
import { type Auditor, noAudit } from '../audit/index.ts'
import { createSerialize } from '../cache/index.ts'
import { createHostCheck, makePalette, readLogo, type Settings } from '../config/index.ts'
import { DAY_MS, isFailure } from '../core/index.ts'
import type { Sealer, Store } from '../store/index.ts'
import { createServer, type Logger, Registry, type ServerOptions, serveDocuments } from '../web/http/index.ts'
import { createBrand } from '../web/ui/index.ts'
import { addAdministration } from './admin/administration.ts'
import type { Area } from './admin/subject/area.ts'
import { type Controls, createAuthMetrics, NO_CONTROLS } from './base/context.ts'
import { createDocumentFetcher, type OutgoingPolicy } from './base/fetch-document.ts'
import { paths } from './base/paths.ts'
import { createDescribedClients } from './oauth/agents/client-document.ts'
import { addAuditRecordRoutes } from './oauth/audit-records.ts'
import { createKeySets, makeAppKeySetUrl } from './oauth/clients/key-sets.ts'
import type { AuthContext } from './oauth/context.ts'
import {
  buildOpenidConfiguration,
  buildServerMetadata,
  buildSmartConfiguration,
  type SmartConfigurationSettings,
} from './oauth/discovery.ts'
import { createFhirTokens } from './oauth/fhir-tokens.ts'
import { computeMaxTokenSeconds } from './oauth/hooks.ts'
import { addIntrospectRoutes } from './oauth/introspect.ts'
import type { KeyRing } from './oauth/keys/key-ring.ts'
import { createKeyRing } from './oauth/keys/key-ring.ts'
import { addLaunchContextRoutes } from './oauth/launch-context-endpoint.ts'
import { addRegisterRoutes } from './oauth/register/routes.ts'
import { addRevokeRoutes } from './oauth/revocation/routes.ts'
import { createSettling } from './oauth/revocation/settle.ts'
import { addStyleRoutes } from './oauth/style.ts'
import { addTokenRoutes } from './oauth/token/routes.ts'
import { addUserinfoRoutes } from './oauth/userinfo.ts'
import { addAccessLogRoutes } from './pages/access-log/routes.ts'
import { addFactorRoutes } from './pages/account/factors.ts'
import { addAccountRoutes } from './pages/account/routes.ts'
import { type ActivityProblem, listProblems } from './pages/activity/problems.ts'
import { addActivityRoutes } from './pages/activity/routes.ts'
import { addAuthorizeRoutes } from './pages/authorize/routes.ts'
import { addCdsRoutes } from './pages/cds/routes.ts'
import { addConsentRoutes } from './pages/consent/routes.ts'
import { addHomeRoutes } from './pages/home/routes.ts'
import { addManageRoutes } from './pages/manage/routes.ts'
import { makeSignedInBar } from './pages/parts/page-parts.ts'
import { addPickerRoutes } from './pages/picker/routes.ts'
import { addLaunchRoutes } from './pages/portal/launch.ts'
import { addPortalRoutes } from './pages/portal/routes.ts'
import { addProposalRoutes } from './pages/proposals/routes.ts'
import { addActivateRoutes } from './pages/sign-in/activate.ts'
import { addEnrolRoutes } from './pages/sign-in/enrol.ts'
import { addEndSessionRoutes, addLogoutRoutes } from './pages/sign-in/logout.ts'
import { addNewPasswordRoutes } from './pages/sign-in/new-password.ts'
import { addPasskeyRoutes } from './pages/sign-in/passkey.ts'
import { addProviderRoutes } from './pages/sign-in/provider-routes.ts'
import { addLoginRoutes } from './pages/sign-in/routes.ts'
import { addSecondFactorRoutes } from './pages/sign-in/second-factor.ts'
import { addLoginStateRoutes } from './pages/sign-in/state.ts'
import { createPasswordCheck } from './users/check-password.ts'
import { findCurrentLogin, hasLoginCookie } from './users/login.ts'
import { listOwnPatients } from './users/own-records.ts'
import { createProviders } from './users/providers/providers.ts'
import { makeRules } from './users/validity/rule.ts'

export type { CommandContext, CommandRequest } from './lab/command-line.ts'

export interface AuthServerOptions {
  readonly settings: Settings
  readonly store: Store
  readonly sealer: Sealer
  /** Which patients a clinician may see; by default all. */
  readonly userFilter?: AuthContext['userFilter']
  /** By default nothing can be changed. */
  readonly controls?: Controls
  /** Registers a function to call when the sign-in providers change. */
  readonly onLoginChange?: (apply: (login: Settings['login']) => void) => void
  /** By default nothing is recorded. */
  readonly audit?: Auditor
  readonly clock?: () => number
  /** For requests to the FHIR server. */
  readonly fetch?: typeof globalThis.fetch
  readonly logger?: Logger
  readonly tls?: ServerOptions['tls']
  /** The cost of new password hashes. */
  readonly passwordCost?: number
  readonly explainRequest?: AuthContext['explainRequest']
  /** Whether the FHIR server has the records of the sample accounts; by default it has. */
  readonly hasSampleRecords?: boolean
  /** What is administered beside what the server has itself. */
  readonly administration?: readonly Area[]
}

/** Endpoints for programs: JSON, without cookies. */
const FOR_CLIENTS: ReadonlySet<string> = new Set([
  paths.token,
  paths.jwks,
  paths.introspect,
  paths.revoke,
  paths.revocations,
  paths.userinfo,
  paths.register,
  paths.launchContexts,
  paths.auditRecords,
  paths.backchannelLogout,
])

// The login cookie alone authorizes nothing here: two endpoints show a page first, the others use no cookie.
const OPEN_TO_OTHER_SITES: ReadonlySet<string> = new Set([paths.authorize, paths.endSession, ...FOR_CLIENTS])

/** How much longer a key is published than its tokens are valid, because clocks differ. */
const PUBLISHED_AFTER_MS = 60_000
/** Creates the auth server, not yet listening. Call `initialize` before. */
export async function createAuthServer(options: AuthServerOptions): Promise<FastifyInstance> {
  const { settings, store, sealer, clock = Date.now, fetch = globalThis.fetch } = options
  const keys = createKeyRing({
    store,
    sealer,
    clock,
    publishedForMs: computeMaxTokenSeconds(settings) * 1000 + PUBLISHED_AFTER_MS,
    ...(settings.keyMaxAgeDays > 0 ? { maxAgeMs: settings.keyMaxAgeDays * DAY_MS } : {}),
    onFailure: error => options.logger?.error({ err: error }, 'Cannot create the next signing key'),
  })
  const outgoing = createDocumentFetcher(makeOutgoingPolicy(options, clock))
  const keySets = createKeySets({
    fetchDocument: outgoing.fetchDocument,
    clock,
    onUnusable: (url, reason) => options.logger?.warn({ url, reason }, 'Cannot use the key set of a client'),
  })
  const describedClients = createDescribedClients({
    store,
    settings,
    clock,
    fetchDocument: outgoing.fetchDocument,
  })
  const providers = createProviders(settings.login, {
    clock,
    onFailure: (provider, error) =>
      options.logger?.warn({ provider, err: error }, 'Cannot reach the sign-in provider'),
  })
  const registry = new Registry()
  const rules = makeRules(settings, () => ({
    passwords: providers.passwords,
    secondFactor: providers.secondFactor,
    providers: providers.all,
  }))
  const settling = createSettling({ settings, store, rules, clock })
  options.onLoginChange?.(login => {
    providers.replace(login)
    settling.invalidate()
  })
  // Not even loaded without the setting.
  const lab = settings.lab ? await import('./lab/index.ts') : undefined
  const context: AuthContext = {
    settings,
    brand: makeBrand(settings),
    store,
    sealer,
    keys,
    keySets,
    describedClients,
    clock,
    fetch,
    rules,
    settle: settling.settle,
    passwordCheck: createPasswordCheck({ store, clock, cost: options.passwordCost }),
    takeDirectoryTurn: createSerialize(),
    fhirTokens: createFhirTokens({ settings, keys, clock }, (user, fhirTokens) =>
      listOwnPatients({ settings, store, clock, fetch, fhirTokens }, user),
    ),
    providers,
    controls: options.controls ?? NO_CONTROLS,
    metrics: createAuthMetrics(registry),
    audit: options.audit ?? noAudit,
    userFilter: options.userFilter,
    explainRequest: options.explainRequest,
    hasSampleRecords: options.hasSampleRecords ?? true,
    hooks: lab?.createLabHooks({ store, rules, clock }),
    developerPages: lab?.makeDeveloperPages(settings),
  }
  const app = await createServer({ ...makeServerOptions(options, context), metrics: registry })
  app.addHook('onClose', () => outgoing.close())
  app.addHook('onSend', (_request, reply, payload, done) => {
    if (reply.hasHeader('access-control-allow-origin'))
      reply.header('access-control-expose-headers', 'Retry-After, WWW-Authenticate, X-Request-Id')
    done(null, payload)
  })
  addRoutes(app, context, options)
  lab?.addLabRoutes(app, context)
  return app
}

function makeBrand({ brand }: Settings): AuthContext['brand'] {
  const logo = brand.logo === undefined ? undefined : readLogo(brand.logo)
  // The start has read it already; it is missing only if it was removed in the meantime.
  return createBrand({ ...brand, logo: isFailure(logo) ? undefined : logo, palette: makePalette(brand) })
}

/** Tokens and launches of the command line, for tests. */
export const loadTestCommands = () => import('./lab/command-line.ts')

/** What was refused since a time and why, oldest first. */
export async function explainProblems(
  { settings, store, explainRequest }: Pick<AuthServerOptions, 'settings' | 'store' | 'explainRequest'>,
  options: Parameters<typeof listProblems>[1],
): Promise<readonly ActivityProblem[]> {
  const lab = settings.lab ? await import('./lab/index.ts') : undefined
  const rules = makeRules(settings, () => settings.login)
  const hooks = lab?.createLabHooks({ store, rules, clock: Date.now })
  return listProblems({ store, explainRequest, hooks }, options)
}

function addRoutes(
  app: FastifyInstance,
  context: AuthContext,
  { administration }: Pick<AuthServerOptions, 'administration'>,
): void {
  addLoginRoutes(app, context)
  addLoginStateRoutes(app, context)
  addSecondFactorRoutes(app, context)
  addEnrolRoutes(app, context)
  addPasskeyRoutes(app, context)
  addNewPasswordRoutes(app, context)
  addActivateRoutes(app, context)
  addProviderRoutes(app, context)
  addLogoutRoutes(app, context)
  addPortalRoutes(app, context)
  addLaunchRoutes(app, context)
  addCdsRoutes(app, context)
  addLaunchContextRoutes(app, context)
  addAuditRecordRoutes(app, context)
  addManageRoutes(app, context)
  addProposalRoutes(app, context)
  addAccountRoutes(app, context)
  addAccessLogRoutes(app, context)
  addHomeRoutes(app, context)
  addFactorRoutes(app, context)
  addActivityRoutes(app, context)
  addAdministration(app, context, administration)
  addAuthorizeRoutes(app, context)
  addPickerRoutes(app, context)
  addConsentRoutes(app, context)
  addTokenRoutes(app, context)
  addKeyRoutes(app, context.keys)
  addIntrospectRoutes(app, context)
  addRevokeRoutes(app, context)
  addUserinfoRoutes(app, context)
  addRegisterRoutes(app, context)
  addEndSessionRoutes(app, context)
  addDiscoveryRoutes(app, context.settings)
  addStyleRoutes(app, context.settings)
  app.get('/', (_request, reply) => reply.redirect(paths.portal, 302))
}

// The app's own key set may be at a private address, but nothing else on its host.
function makeOutgoingPolicy({ settings, logger }: AuthServerOptions, clock: () => number): OutgoingPolicy {
  return {
    privateAllowed: settings.onLoopback,
    privateHosts: settings.privateJwksHosts,
    privateUrl: makeAppKeySetUrl(settings),
    clock,
    onFailure: (reason, url) => logger?.warn({ url, reason }, 'Cannot fetch a document of a client'),
  }
}

function makeServerOptions({ logger, tls }: AuthServerOptions, context: AuthContext): ServerOptions {
  const { settings, brand, store, keys, clock } = context
  return {
    name: 'auth',
    url: settings.issuerUrl,
    clock,
    home: paths.portal,
    brand,
    findBar: request =>
      hasLoginCookie(context, request)
        ? findCurrentLogin(context, request).then(login => login && makeSignedInBar(login))
        : undefined,
    metricsAccess: settings.metrics.access,
    acceptsHost: createHostCheck(settings),
    checks: [
      { name: 'database', check: () => store.ping() },
      { name: 'signing key', check: async () => void (await keys.getSigningKey()) },
    ],
    errorStyle: path => (isForClients(path) ? 'oauth' : 'page'),
    acceptsCrossSite: path => OPEN_TO_OTHER_SITES.has(path),
    ...(logger ? { logger } : {}),
    ...(tls ? { tls } : {}),
    ...(settings.trustProxy === undefined ? {} : { trustProxy: settings.trustProxy }),
  }
}

function isForClients(path: string): boolean {
  return FOR_CLIENTS.has(path) || path.startsWith('/.well-known/') || path.startsWith(`${paths.adminApi}/`)
}

/** The public discovery documents. */
function addDiscoveryRoutes(app: FastifyInstance, settings: SmartConfigurationSettings): void {
  serveDocuments(app, {
    [paths.openidConfiguration]: buildOpenidConfiguration(settings),
    [paths.serverMetadata]: buildServerMetadata(settings),
    [paths.smartConfiguration]: buildSmartConfiguration(settings),
  })
}

/** `GET /oauth2/jwks`. */
function addKeyRoutes(app: FastifyInstance, keys: KeyRing): void {
  app.get(paths.jwks, async (_request, reply) =>
    reply
      .headers({ 'access-control-allow-origin': '*', 'cache-control': 'public, max-age=60' })
      .send({ keys: await keys.listPublicKeys() }),
  )
}
