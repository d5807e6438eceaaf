import { randomBytes } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import { Pool } from 'undici'
import type { FhirAudit } from '../audit/index.ts'
import { type Guard, judgedBefore } from '../consent/index.ts'
import { isProblem, isRecord } from '../fhir/index.ts'
import { sealer } from '../store/index.ts'
import { createServer, type Logger, type Origins, type ReadyCheck, type ServerOptions } from '../web/index.ts'
import type { Context } from './call.ts'
import { gatewayStatement } from './capability-statement.ts'
import { handle } from './handle.ts'
import { serveGateway } from './http/route.ts'
import { rosterOf } from './roster/roster.ts'
import { type LinkSealer, openPages } from './search/pages.ts'
import { addressesOf } from './upstream/addresses.ts'
import { upstreamCapabilities } from './upstream/capabilities.ts'
import { credentials, type UpstreamAuth } from './upstream/credentials.ts'
import type { Fetch } from './upstream/fetch.ts'
import { openUpstream, type Upstream } from './upstream/upstream.ts'
import { type Watch, watch } from './upstream/watch.ts'

export interface GatewayOptions {
  /** The FHIR base as clients know it, without a trailing slash. */
  readonly baseUrl: string
  /** The FHIR base of the server behind, without a trailing slash. */
  readonly upstreamUrl: string
  /** Other bases by which that server calls itself in what it answers. */
  readonly upstreamAliases?: readonly string[]
  /** Who judges requests. A gateway without one would be a hole. */
  readonly guard: Guard
  /** Keeps what was decided before it is answered, and answers AuditEvents: never the upstream (contract 5.8). */
  readonly audit?: FhirAudit | undefined
  /** What `.well-known/smart-configuration` answers; `metadata` takes its addresses over. */
  readonly smartConfiguration: object | (() => object)
  readonly auth?: UpstreamAuth
  /** The certificate that the gateway shows, and the authorities that it trusts, for the upstream. */
  readonly upstreamTls?: { readonly cert?: string; readonly key?: string; readonly ca?: string }
  /** How a patient's compartment is asked for; by default as the upstream's CapabilityStatement suggests. */
  readonly narrowing?: 'auto' | 'compartment' | 'parameter'
  readonly timeoutMs?: number
  /** The largest answer that is looked into, in bytes. */
  readonly responseLimit?: number
  readonly connections?: number
  /** Seals paging links. Gateways with the same secret take each other's; by default it is this process's own. */
  readonly sealer?: LinkSealer
  readonly logger?: Logger
  readonly clock?: () => number
  readonly fetch?: Fetch
  /** What `/readyz` looks at beside the upstream: the guard's key set, say. */
  readonly checks?: readonly ReadyCheck[]
  /** The largest body that is read, in bytes. */
  readonly bodyLimit?: number
  /** The origins whose pages may read answers; any unless listed. */
  readonly origins?: Origins
  /** What the common base of the servers takes further: TLS, proxies, metrics. */
  readonly web?: Pick<ServerOptions, 'tls' | 'trustProxy' | 'openMetrics' | 'drainMs'>
}

const BODY_LIMIT = 16 * 1024 * 1024
const RESPONSE_LIMIT = 32 * 1024 * 1024
const TIMEOUT_MS = 10_000
const CONNECTIONS = 64

/** The gateway in front of a FHIR server, not yet listening. */
export async function gateway(options: GatewayOptions): Promise<FastifyInstance> {
  const { baseUrl, guard, logger, clock = Date.now, bodyLimit = BODY_LIMIT } = options
  const basePath = new URL(baseUrl).pathname.replace(/\/$/, '')
  const isFhir = (path: string) => path === basePath || path.startsWith(`${basePath}/`)
  const pool = poolOf(options)
  const watching = watch(clock, logger)
  const context = contextOf(options, pool, watching, clock)
  const app = await createServer({
    name: 'fhir',
    url: baseUrl,
    clock,
    bodyLimit,
    checks: [watching.check, ...(options.checks ?? [])],
    errorStyle: path => (isFhir(path) ? 'fhir' : 'api'),
    // A bearer token is sent on purpose; no cookie opens this server.
    acceptsCrossSite: isFhir,
    ...(logger && { logger }),
    ...options.web,
  })
  await app.register(
    async scope =>
      serveGateway(scope, {
        ...{ context, guard, basePath, bodyLimit, clock },
        audit: options.audit,
        origins: options.origins ?? '*',
      }),
    { prefix: basePath },
  )
  watching.start(context.upstream)
  app.addHook('onClose', async () => {
    watching.close()
    await pool.destroy()
  })
  return app
}

function poolOf({ upstreamUrl, upstreamTls, connections = CONNECTIONS }: GatewayOptions): Pool {
  return new Pool(new URL(upstreamUrl).origin, {
    connections,
    keepAliveTimeout: 30_000,
    // Time is kept by the exchange itself.
    headersTimeout: 0,
    bodyTimeout: 0,
    ...(upstreamTls && { connect: { ...upstreamTls } }),
  })
}

function contextOf(options: GatewayOptions, pool: Pool, watching: Watch, clock: () => number): Context {
  const { baseUrl, upstreamUrl, upstreamAliases = [], smartConfiguration, narrowing = 'auto' } = options
  const addresses = addressesOf(baseUrl, [upstreamUrl, ...upstreamAliases])
  const upstream = upstreamOf(options, pool, addresses, watching, clock)
  const statement = upstreamCapabilities(upstream, clock)
  const configuration = () =>
    typeof smartConfiguration === 'function' ? smartConfiguration() : smartConfiguration
  return {
    baseUrl,
    addresses,
    upstream,
    responseLimit: options.responseLimit ?? RESPONSE_LIMIT,
    handle,
    judgedBefore: judgedBefore(),
    rosterOf,
    pages: openPages(options.sealer ?? sealer(randomBytes(32).toString('base64url'))),
    smartConfiguration: configuration,
    async capabilities() {
      const found = await statement.get()
      return isProblem(found) ? found : gatewayStatement(found, baseUrl, configuration())
    },
    async narrowing() {
      if (narrowing !== 'auto') return narrowing
      const found = await statement.get()
      return !isProblem(found) && hasCompartments(found) ? 'compartment' : 'parameter'
    },
  }
}

function upstreamOf(
  options: GatewayOptions,
  pool: Pool,
  addresses: Context['addresses'],
  watching: Watch,
  clock: () => number,
): Upstream {
  const { timeoutMs = TIMEOUT_MS, auth = { kind: 'none' }, logger } = options
  return openUpstream({
    pool,
    basePath: new URL(options.upstreamUrl).pathname.replace(/\/$/, ''),
    addresses,
    credentials: credentials({
      auth,
      clock,
      timeoutMs,
      fetch: options.fetch ?? ((url, init) => fetch(url, init)),
    }),
    timeoutMs,
    responseLimit: options.responseLimit ?? RESPONSE_LIMIT,
    clock,
    onExchange: answer => watching.saw(answer),
    warn: text => logger?.warn(text),
  })
}

const PATIENT_COMPARTMENT = 'http://hl7.org/fhir/CompartmentDefinition/patient'

function hasCompartments({ rest }: Readonly<Record<string, unknown>>): boolean {
  return (
    Array.isArray(rest) &&
    rest.some(
      it => isRecord(it) && Array.isArray(it.compartment) && it.compartment.includes(PATIENT_COMPARTMENT),
    )
  )
}
