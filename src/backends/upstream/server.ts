import type { FastifyInstance } from 'fastify'
import { Pool } from 'undici'
import { isProblem, isRecord, listGatewayOperations, type OperationRule } from '../../fhir/index.ts'
import { createAccessCache, createFhirApi, evaluateLate, type FhirApiOptions } from '../../fhir-api/index.ts'
import { createRandomToken, createSealer, type Sealer } from '../../store/index.ts'
import { createBackend } from './backend.ts'
import { buildStatement } from './capability-statement.ts'
import type { Context } from './context.ts'
import { openUpstream, type Upstream } from './http/client.ts'
import { createCredentials, type UpstreamAuth } from './http/credentials.ts'
import type { Fetch } from './http/fetch.ts'
import { createAddresses } from './http/urls.ts'
import { type Watch, watchUpstream } from './http/watch.ts'
import { CONNECTIONS, PROBE_CONNECTIONS, RESPONSE_BYTES } from './limits.ts'
import { findMembers } from './membership/membership.ts'
import { createForUpstream } from './search/upstream-parameters.ts'
import { openPages } from './search/page-links.ts'
import { createCapabilities, type UpstreamCapabilities } from './http/capabilities.ts'

export interface GatewayOptions extends FhirApiOptions {
  /** The FHIR base of the server behind, without a trailing slash. */
  readonly upstreamUrl: string
  /** Other bases by which that server calls itself in what it answers. */
  readonly upstreamAliases?: readonly string[]
  readonly auth?: UpstreamAuth
  /** The certificate that the gateway shows, and the authorities that it trusts, for the upstream. */
  readonly upstreamTls?: { readonly cert?: string; readonly key?: string; readonly ca?: string }
  /** How a patient's compartment is asked for; by default as the upstream's CapabilityStatement suggests. */
  readonly narrowing?: 'auto' | 'compartment' | 'parameter'
  /** The operations that are offered; by default none that the site would have to let pass. */
  readonly operations?: readonly OperationRule[]
  /** Search parameters of the site that depend only on the resource itself: `Patient.mrn`, or `mrn` for every type. */
  readonly searchParameters?: readonly string[]
  readonly timeoutMs?: number
  /** The largest answer that is looked into, in bytes. */
  readonly responseLimit?: number
  readonly connections?: number
  /** Seals paging links. Gateways with the same secret take each other's; by default it is this process's own. */
  readonly sealer?: Sealer
  readonly fetch?: Fetch
}

const TIMEOUT_MS = 10_000

/** The gateway in front of a FHIR server, not yet listening. */
export async function gateway(options: GatewayOptions): Promise<FastifyInstance> {
  const { logger, clock = Date.now, checks = [] } = options
  const pool = poolOf(options)
  const watching = watchUpstream({ clock, log: logger, onAvailable: () => statement.start() })
  const addresses = createAddresses(options.baseUrl, [
    options.upstreamUrl,
    ...(options.upstreamAliases ?? []),
  ])
  const upstream = upstreamOf(options, pool, addresses, watching, clock)
  const statement = createCapabilities(upstream, clock)
  const context = contextOf(options, { addresses, upstream, statement })
  const app = await createFhirApi(
    { ...options, clock, checks: [watching.check, ...checks] },
    createBackend(context),
  )
  watching.start(upstream)
  app.addHook('onClose', async () => {
    watching.close()
    statement.close()
    await pool.destroy()
  })
  return app
}

function poolOf({ upstreamUrl, upstreamTls, connections = CONNECTIONS }: GatewayOptions): Pool {
  return new Pool(new URL(upstreamUrl).origin, {
    connections: connections + PROBE_CONNECTIONS,
    keepAliveTimeout: 30_000,
    // Time is kept by the exchange itself.
    headersTimeout: 0,
    bodyTimeout: 0,
    ...(upstreamTls && { connect: { ...upstreamTls } }),
  })
}

function contextOf(
  options: GatewayOptions,
  {
    statement,
    ...connection
  }: Pick<Context, 'addresses' | 'upstream'> & { readonly statement: UpstreamCapabilities },
): Context {
  const { baseUrl, smartConfiguration, narrowing = 'auto', operations = listGatewayOperations() } = options
  const configuration = evaluateLate(smartConfiguration)
  return {
    ...connection,
    baseUrl,
    responseLimit: options.responseLimit ?? RESPONSE_BYTES,
    isRecorded: options.audit !== undefined,
    isForUpstream: createForUpstream(options.searchParameters ?? []),
    operations,
    accessCache: createAccessCache(),
    versionAccess: options.versionAccess ?? 'current',
    findMembers,
    pages: openPages(options.sealer ?? createSealer(createRandomToken())),
    async capabilities() {
      const found = await statement.get()
      return isProblem(found) ? found : buildStatement(found, baseUrl, configuration(), operations)
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
    connections: options.connections ?? CONNECTIONS,
    basePath: new URL(options.upstreamUrl).pathname.replace(/\/$/, ''),
    addresses,
    credentials: createCredentials({
      auth,
      clock,
      timeoutMs,
      fetch: options.fetch ?? ((url, init) => fetch(url, init)),
    }),
    timeoutMs,
    responseLimit: options.responseLimit ?? RESPONSE_BYTES,
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
