import { setTimeout } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import { buildConnector, Pool } from 'undici'
import { createSerialize, type Serialize } from '../../cache/index.ts'
import { type Fetch, isFailure, isRecord } from '../../core/index.ts'
import { listGatewayOperations, type OperationRule } from '../../fhir/index.ts'
import { createAccessCache, createFhirApi, evaluateLate, type FhirApiOptions } from '../../fhir-api/index.ts'
import { createRandomToken, createSealer, type Sealer } from '../../store/index.ts'
import { Registry } from '../../web/http/index.ts'
import { createBackend } from './backend.ts'
import { createCapabilities, createStatement, type UpstreamCapabilities } from './capability-statement.ts'
import { type Conceal, createConcealment } from './concealment.ts'
import type { GatewayContext } from './context.ts'
import { createClient, type Upstream } from './http/client.ts'
import type { ExchangeOutcome, StreamLimit } from './http/exchange.ts'
import { createCredentials, type UpstreamAuth } from './http/send.ts'
import { createUrlRewriter } from './http/urls.ts'
import { watchUpstream } from './http/watch.ts'
import {
  CONNECTIONS,
  GATEWAY_BODY_BYTES,
  PROBE_CONNECTIONS,
  RESPONSE_BYTES,
  START_MS,
  STREAM_BYTES,
  STREAM_MS,
} from './limits.ts'
import { openPages } from './paging.ts'
import { createUpstreamParameters, describeProfile, type ProfileName } from './profile.ts'
import { createChainSupport } from './recognize/chain-support.ts'
import { createRecognition, type Recognition } from './recognize/recognition.ts'
import { findsWithin } from './search/finds-within.ts'
import { findMembers } from './search/membership.ts'

export interface UpstreamTls {
  readonly cert?: string
  readonly key?: string
  readonly ca?: string
}

export interface GatewayOptions extends FhirApiOptions {
  /** The FHIR base URL of the upstream, without a trailing slash. */
  readonly upstreamUrl: string
  /** Other base URLs that the upstream uses for itself in its responses. */
  readonly upstreamAliases?: readonly string[]
  readonly auth?: UpstreamAuth
  /** The client certificate of the gateway, and the certificate authorities that it trusts, for each new connection. */
  readonly upstreamTls?: () => UpstreamTls
  /** How a patient's compartment is searched; by default as the upstream's CapabilityStatement suggests. */
  readonly narrowing?: 'auto' | 'compartment' | 'parameter'
  /** How the upstream behaves where servers differ; by default recognized by what it shows of itself. */
  readonly profile?: ProfileName
  /** Whether the upstream may answer searches of callers from earlier results; it must not by default. */
  readonly searchCache?: 'bypass' | 'allow'
  /** The operations that the gateway offers; by default none that the site has to allow. */
  readonly operations?: readonly OperationRule[]
  /** Search parameters of the site that depend only on the resource itself: `Patient.mrn`, or `mrn` for every type. */
  readonly searchParameters?: readonly string[]
  readonly timeoutMs?: number
  /** The size of the largest response that is inspected, in bytes. */
  readonly responseLimit?: number
  /** How much of a response is streamed, and for how long. */
  readonly streamLimit?: StreamLimit
  readonly connections?: number
  /** Whether a bulk export for a caller who may see everything is the upstream's own. */
  readonly relaysExports?: boolean
  /** Encrypts paging links. Gateways with the same secret open each other's links; by default each process has its own. */
  readonly sealer?: Sealer
  readonly fetch?: Fetch
  /** How a response waits that shows a limited caller nothing. */
  readonly conceal?: Conceal
  /** Serializes conditional writes with equal conditions; by default among the requests of this process. */
  readonly serialize?: Serialize
}

const TIMEOUT_MS = 10_000

/** Creates the gateway in front of a FHIR server. It does not listen yet. */
export async function createGateway(options: GatewayOptions): Promise<FastifyInstance> {
  const { logger, clock = Date.now, checks = [] } = options
  const metrics = options.metrics ?? new Registry()
  const pool = createPool(options)
  const profile = createRecognition(
    options.profile ?? 'auto',
    () => upstream,
    text => logger?.warn(text),
  )
  const watching = watchUpstream({
    clock,
    log: logger,
    onAvailable() {
      void profile.ask()
      statement.start()
    },
    describe: () => describeProfile(profile.current()),
  })
  metrics.gauge(
    {
      name: 'sallyport_upstream_up',
      help: 'Whether the upstream FHIR server is available: 1 or 0.',
      merge: 'min',
    },
    () => [[Number(watching.isAvailable() ?? Number.NaN)]],
  )
  const urls = createUrlRewriter(options.baseUrl, [options.upstreamUrl, ...(options.upstreamAliases ?? [])])
  const upstream: Upstream = createUpstream(options, pool, urls, clock, metrics, answer => {
    watching.observe(answer)
    profile.observe(answer)
  })
  const statement = createCapabilities(upstream, clock, profile.learn)
  const context = createContext(options, { urls, upstream, statement, profile })
  const { bodyLimit = GATEWAY_BODY_BYTES, contentLimit = bodyLimit } = options
  const app = await createFhirApi(
    { ...options, bodyLimit, contentLimit, metrics, clock, checks: [watching.check, ...checks] },
    createBackend(context),
  )
  const known = watching.start(upstream).then(() => Promise.all([profile.settled(), statement.settled()]))
  app.addHook('onReady', async () => {
    await Promise.race([known, setTimeout(START_MS, undefined, { ref: false })])
  })
  app.addHook('onClose', async () => {
    watching.close()
    statement.close()
    await pool.destroy()
  })
  return app
}

function createPool({ upstreamUrl, upstreamTls, connections = CONNECTIONS }: GatewayOptions): Pool {
  return new Pool(new URL(upstreamUrl).origin, {
    connections: connections + PROBE_CONNECTIONS,
    keepAliveTimeout: 30_000,
    // The exchange has its own time-outs.
    headersTimeout: 0,
    bodyTimeout: 0,
    ...(upstreamTls && { connect: createConnector(upstreamTls) }),
  })
}

function createConnector(getTls: () => UpstreamTls): buildConnector.connector {
  let tls = getTls()
  let connect = buildConnector(tls)
  return (target, done) => {
    if (tls !== getTls()) {
      tls = getTls()
      connect = buildConnector(tls)
    }
    return connect(target, done)
  }
}

interface Connection extends Pick<GatewayContext, 'urls' | 'upstream'> {
  readonly statement: UpstreamCapabilities
  readonly profile: Recognition
}

function createContext(
  options: GatewayOptions,
  { statement, profile, ...connection }: Connection,
): GatewayContext {
  const { baseUrl, smartConfiguration, narrowing = 'auto', operations = listGatewayOperations() } = options
  const { conceal, clock = Date.now } = options
  const isUpstreamParameter = createUpstreamParameters(options.searchParameters ?? [])
  const gateway = {
    baseUrl,
    operations,
    isUpstreamParameter,
    isRecorded: options.audit !== undefined,
    exports: options.exports !== undefined,
  }
  const toJson = createStatement(gateway, evaluateLate(smartConfiguration))
  return {
    ...connection,
    ...gateway,
    clock,
    responseLimit: options.responseLimit ?? RESPONSE_BYTES,
    accessCache: createAccessCache(),
    relaysExports: options.relaysExports ?? false,
    versionAccess: options.versionAccess ?? 'current',
    memberLookups: new Map(),
    findMembers,
    findsWithin,
    followsChains: createChainSupport(connection.upstream, clock),
    deletions: new Map(),
    concealment: createConcealment(conceal),
    conceal,
    serialize: options.serialize ?? createSerialize(),
    pages: openPages(options.sealer ?? createSealer(createRandomToken())),
    async capabilities() {
      const found = await statement.get()
      return isFailure(found) ? found : toJson(found)
    },
    profile: () => profile.current().traits,
    recognize: profile.settled,
    narrowing() {
      if (narrowing !== 'auto') return narrowing
      const { compartmentSearches } = profile.current().traits
      const isOffered =
        compartmentSearches === 'yes' ||
        (compartmentSearches === 'as-stated' && hasCompartments(statement.current()))
      return isOffered ? 'compartment' : 'parameter'
    },
    searchCache: options.searchCache ?? 'bypass',
  }
}

function createUpstream(
  options: GatewayOptions,
  pool: Pool,
  urls: GatewayContext['urls'],
  clock: () => number,
  metrics: Registry,
  observe: (answer: ExchangeOutcome) => void,
): Upstream {
  const { timeoutMs = TIMEOUT_MS, auth = { kind: 'none' }, logger } = options
  const durations = metrics.histogram({
    name: 'sallyport_upstream_request_duration_seconds',
    help: 'Time of requests to the upstream FHIR server, until the rest of a long response is streamed. The outcome is the class of the status, or why there is no response.',
    labels: ['method', 'outcome'],
  })
  return createClient({
    pool,
    connections: options.connections ?? CONNECTIONS,
    origin: new URL(options.upstreamUrl).origin,
    basePath: new URL(options.upstreamUrl).pathname.replace(/\/$/, ''),
    urls,
    credentials: createCredentials({
      auth,
      clock,
      timeoutMs,
      fetch: options.fetch ?? ((url, init) => fetch(url, init)),
    }),
    timeoutMs,
    responseLimit: options.responseLimit ?? RESPONSE_BYTES,
    streamLimit: options.streamLimit ?? { bytes: STREAM_BYTES, ms: STREAM_MS },
    clock,
    onExchange(answer, method, seconds) {
      observe(answer)
      durations.observe([method, describeOutcome(answer)], seconds)
    },
    warn: text => logger?.warn(text),
  })
}

function describeOutcome(answer: ExchangeOutcome): string {
  return isFailure(answer) ? answer.reason : `${Math.floor(answer.status / 100)}xx`
}

const PATIENT_COMPARTMENT = 'http://hl7.org/fhir/CompartmentDefinition/patient'

function hasCompartments(statement: Readonly<Record<string, unknown>> | undefined): boolean {
  const rest = statement?.rest
  return (
    Array.isArray(rest) &&
    rest.some(
      it => isRecord(it) && Array.isArray(it.compartment) && it.compartment.includes(PATIENT_COMPARTMENT),
    )
  )
}
