import { isDeepStrictEqual } from 'node:util'
import type { FastifyInstance } from 'fastify'
import { createFhirAudit } from '../../audit/index.ts'
import type { FhirServerOptions } from '../../backends/sqlite/index.ts'
import {
  createHostCheck,
  ensureSecret,
  getMcpUrl,
  getResourceMetadataUrl,
  isLoopbackHost,
  MCP_SCOPES,
  type Settings,
} from '../../config/index.ts'
import { DAY_MS, describeError, HOUR_MS } from '../../core/index.ts'
import type { WayIn } from '../../fhir-api/index.ts'
import type { Interceptor } from '../../interceptor/index.ts'
import { givesAccessByCareTeam } from '../../smart/index.ts'
import { createSealer, type Store } from '../../store/index.ts'
import { NotReady } from '../../web/http/index.ts'
import { version } from '../../web/ui/index.ts'
import { CommandFailure } from '../command.ts'
import { prepareDataFile } from '../with-store.ts'
import { exportsData, findOfferedOperations } from './files.ts'
import { openGateway } from './gateway.ts'
import { createLiveFilter } from './live.ts'
import type { Closing, Parts, PrintLine, Storage } from './parts.ts'
import { type RelayedConfiguration, relayConfiguration } from './relay-configuration.ts'
import { loadSamplePatients } from './sample-patients.ts'

export interface OpenedFhir {
  readonly app: FastifyInstance
  /** Call when the servers of this process listen: the key set can be fetched from now on. */
  listening(): void
}

interface FhirInput {
  readonly storage: Promise<Storage>
  readonly prepared: Promise<void> | undefined
  readonly fetch: typeof globalThis.fetch
}

/**
 * Opens the FHIR server: embedded, or the gateway if an upstream is set. It calls the auth server by HTTP requests, even
 * in one process.
 */
export async function openFhir(
  parts: Parts,
  { storage, prepared, fetch }: FhirInput,
  closing: Closing,
): Promise<OpenedFhir> {
  const { settings, trustedIssuers, live, logger } = parts
  const { upstreamUrl } = settings.fhir
  const [
    { createInterceptor, applyTokenFailures },
    { buildResourceDocuments, buildSmartConfiguration },
    { store, audit },
  ] = await Promise.all([
    import('../../interceptor/index.ts'),
    import('../../auth/index.ts'),
    storage,
    prepared,
  ])
  const interceptor = createInterceptor({
    authUrl: settings.issuerUrl,
    trustedIssuers,
    fhirBaseUrl: settings.fhirBaseUrl,
    contexts: settings.fhir.scopeContexts,
    searchPermission: settings.fhir.searchPermission,
    userFilter: createLiveFilter(live),
    protectedTypes: settings.fhir.protectedTypes,
    relationContexts: settings.fhir.relationContexts,
    careTeamsGiveAccess: () => givesAccessByCareTeam(live.current.policy),
    operations: findOfferedOperations(settings),
    fetch,
    onUnusableKeySet: (url, reason) => logger.warn({ url, reason }, 'Cannot use key set'),
    onError: error => logger.error({ err: error }, 'Interceptor failed; the request was refused'),
  })
  live.onChange(({ policy }, before) => {
    if (!isDeepStrictEqual(policy, before.policy)) interceptor.forget()
  })
  closing.add(() => interceptor.close())
  const relayed = findRelayedConfiguration(parts)
  const given = {
    guard: settings.developerTools ? applyTokenFailures(interceptor) : interceptor,
    audit: createFhirAudit({ auditor: audit, store, fhirBaseUrl: settings.fhirBaseUrl }),
    smartConfiguration: relayed ? relayed.current : buildSmartConfiguration(settings),
    documents: buildResourceDocuments(settings),
    ways: settings.agents.enabled ? [await openMcp(settings, interceptor, store)] : [],
    checks: [
      { name: 'key set', check: async () => requireKeySet(interceptor.ready()) },
      ...(relayed ? [{ name: 'identity provider', check: async () => void relayed.current() }] : []),
      ...(settings.audit.kept && settings.audit.failure === 'refuse'
        ? [{ name: 'audit', check: () => store.ping() }]
        : []),
    ],
    ...(exportsData(settings.fhir) && {
      exports: {
        store,
        sealer: createSealer(ensureSecret(settings)),
        lifetimeMs: settings.fhir.exportHours * HOUR_MS,
        fileResources: settings.fhir.exportFileResources,
      },
    }),
    versionAccess: settings.fhir.versionAccess,
    bodyLimit: toBytes(settings.fhir.bodyLimitMegabytes),
    contentLimit: toBytes(settings.fhir.binaryLimitMegabytes),
    entryLimit: settings.fhir.bundleEntries,
    logger,
    web: createWebOptions(parts),
  }
  const app =
    upstreamUrl === undefined
      ? await openEmbedded(settings, given)
      : await openGateway(parts, upstreamUrl, given)
  return {
    app,
    listening() {
      void interceptor.start()
      void relayed?.refresh()
    },
  }
}

async function openMcp(settings: Settings, interceptor: Interceptor, store: Store): Promise<WayIn> {
  const [{ createCallCounter, createMcp }, { createProposals }] = await Promise.all([
    import('../../mcp/index.ts'),
    import('../../proposals/index.ts'),
  ])
  const { agents, fhirBaseUrl, onLoopback } = settings
  const url = getMcpUrl(settings)
  const { origin } = new URL(url)
  return createMcp({
    baseUrl: fhirBaseUrl,
    version,
    guard: interceptor.forAudience(url),
    metadataUrl: getResourceMetadataUrl(url),
    scopes: MCP_SCOPES,
    acceptsOrigin: sent => sent === origin || (onLoopback && isLoopbackOrigin(sent)),
    calls: createCallCounter(agents.callsPerMinute),
    proposals: {
      store,
      proposals: createProposals(createSealer(ensureSecret(settings))),
      lifetimeMs: agents.proposalDays * DAY_MS,
      url: `${settings.issuerUrl}/proposals`,
    },
  })
}

function isLoopbackOrigin(origin: string): boolean {
  const url = URL.parse(origin)
  return url !== null && isLoopbackHost(url.hostname)
}

function toBytes(megabytes: number | undefined): number | undefined {
  return megabytes === undefined ? undefined : megabytes * 1024 * 1024
}

function findRelayedConfiguration({ settings, logger }: Parts): RelayedConfiguration | undefined {
  const url = settings.fhir.smartConfigurationUrl
  if (url === undefined) return undefined
  return relayConfiguration({
    url,
    fetch: (address, init) => fetch(address, init),
    clock: Date.now,
    warn: text => logger.warn(text),
  })
}

/** Creates and updates the data of the embedded server. Call it in one process, before `openFhir`. */
export async function prepareFhir(
  { settings }: Parts,
  printLine: PrintLine,
  closing: Closing,
): Promise<void> {
  if (settings.fhir.upstreamUrl !== undefined) return
  const dataFile = prepareDataFile(settings)
  const order = {
    dataFile,
    baseUrl: settings.fhirBaseUrl,
    count: settings.fhir.samplePatients,
    now: Date.now(),
  }
  await openDataFile(dataFile, () => loadSamplePatients(order, closing, printLine))
}

async function openEmbedded(
  settings: Settings,
  given: Omit<FhirServerOptions, 'baseUrl' | 'dataFile'>,
): Promise<FastifyInstance> {
  const { fhirServer } = await import('../../backends/sqlite/index.ts')
  const dataFile = prepareDataFile(settings)
  return openDataFile(dataFile, () => fhirServer({ ...given, baseUrl: settings.fhirBaseUrl, dataFile }))
}

function createWebOptions({ settings, live }: Parts) {
  const { tls } = live.current
  return {
    metricsAccess: settings.metrics.access,
    acceptsHost: createHostCheck(settings),
    ...(tls && { tls }),
    ...(settings.trustProxy !== undefined && { trustProxy: settings.trustProxy }),
  }
}

// SQLite does not name the file that it could not open.
async function openDataFile<T>(dataFile: string, open: () => Promise<T>): Promise<T> {
  try {
    return await open()
  } catch (error) {
    const reason = describeError(error)
    throw new CommandFailure(
      reason.includes(dataFile) ? reason : `Cannot open FHIR data ${dataFile}: ${reason}`,
    )
  }
}

function requireKeySet(ready: boolean): void {
  if (!ready) throw new NotReady("the auth server's key set is not yet available")
}
