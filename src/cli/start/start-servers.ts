import { isDeepStrictEqual } from 'node:util'
import type { FastifyInstance } from 'fastify'
import { createHostCheck, type Settings } from '../../config/index.ts'
import {
  type CheckResult,
  createMetricsServer,
  getReporter,
  listen,
  replaceCertificate,
  type ServerReports,
  startDraining,
  startSpanExport,
} from '../../web/http/index.ts'
import { openAuth, type TestClinician } from './auth.ts'
import { openFhir } from './fhir.ts'
import { OwnServers } from './own-fetch.ts'
import { Closing, type Parts, type PrintLine, type ServerName, type Storage } from './parts.ts'
import { bindServer, checkPorts, usePort } from './ports.ts'
import { type Preparation, prepare } from './prepare.ts'
import { createReportingFetch } from './reporting-fetch.ts'

/** Serves the metrics of all servers on their own port, if the settings name one. Closes the servers if it cannot. */
export async function openMetricsPort(settings: Settings, running: Running): Promise<Running> {
  const { metrics } = settings
  if (metrics.port === undefined) return running
  const acceptsHost = createHostCheck({ ...settings, bind: metrics.bind })
  const app = createMetricsServer(() => running.report(), acceptsHost)
  try {
    await usePort((port, hosts) => listen(app, port, hosts), {
      port: metrics.port,
      hosts: metrics.bind,
      name: 'metrics',
      variables: 'SMART_METRICS_PORT',
      bindVariable: 'SMART_METRICS_BIND',
    })
  } catch (error) {
    await running.close()
    throw error
  }
  return { ...running, close: () => Promise.all([app.close(), running.close()]).then(() => {}) }
}

/** Running servers, in this process or in workers. */
export interface Running {
  readonly testLogin: TestClinician | undefined
  /** `/readyz` reports that the servers are about to stop; they keep serving. */
  drain(): void
  close(): Promise<void>
  /** The checks of `/readyz` of all servers. */
  checkReadiness(): Promise<readonly CheckResult[]>
  /** The metrics and checks of all servers. */
  report(): Promise<readonly ServerReports[]>
}

/** Does the work of a start and runs the servers, in this process. */
export async function startServers(parts: Parts, printLine: PrintLine): Promise<Running> {
  await checkPorts(parts)
  const closing = new Closing()
  const preparation = prepare(parts, printLine, closing)
  const serving = await serve(parts, preparation, closing)
  return { ...serving, testLogin: await (await preparation.auth)?.testLogin }
}

export interface Serving extends Omit<Running, 'testLogin'> {
  readonly apps: ReadonlyMap<ServerName, FastifyInstance>
}

/** Runs the servers. If one of them cannot start, the others are closed again. */
export async function serve(parts: Parts, preparation: Preparation, closing: Closing): Promise<Serving> {
  try {
    startTelemetry(parts, closing)
    const { apps, listening } = await openServers(parts, preparation, closing)
    closing.add(() => Promise.all([...apps.values()].map(app => app.close())))
    await Promise.all([
      preparation.auth?.then(({ testLogin }) => testLogin),
      ...[...apps].map(([name, app]) => bindServer(name, app, parts.settings)),
    ])
    listening()
    parts.live.onChange(({ tls }, before) => {
      if (tls && !isDeepStrictEqual(tls, before.tls))
        for (const app of apps.values()) replaceCertificate(app, tls)
    })
    const drain = () => {
      for (const app of apps.values()) startDraining(app)
    }
    const checkReadiness = async () =>
      (await Promise.all([...apps.values()].map(app => getReporter(app).readiness()))).flat()
    const report = () => Promise.all([...apps].map(([name, app]) => reportServer(name, app)))
    return { apps, drain, checkReadiness, report, close: () => closing.close() }
  } catch (error) {
    await closing.close().catch(() => {})
    throw error
  }
}

function startTelemetry({ settings: { telemetry }, logger }: Parts, closing: Closing): void {
  if (!telemetry) return
  const { stop } = startSpanExport(telemetry, logger)
  closing.add(stop)
}

async function reportServer(server: ServerName, app: FastifyInstance): Promise<ServerReports> {
  const { metrics, readiness } = getReporter(app)
  return { server, metrics: [await metrics()], readiness: await readiness() }
}

async function openServers(parts: Parts, { storage, ...prepared }: Preparation, closing: Closing) {
  const { names, settings } = parts
  const own = new OwnServers(settings)
  const fetch = createReportingFetch(own.fetch, parts.logger)
  const [auth, fhir, app] = await Promise.all([
    names.includes('auth')
      ? Promise.all([storage, prepared.auth]).then(([kept]) => openAuth(parts, kept, fetch))
      : undefined,
    names.includes('fhir')
      ? openFhir(parts, { storage, prepared: prepared.fhir, fetch }, closing)
      : undefined,
    names.includes('app') ? storage.then(kept => openApp(parts, kept, fetch)) : undefined,
  ])
  const apps = new Map<ServerName, FastifyInstance>()
  if (auth) apps.set('auth', auth)
  if (fhir) apps.set('fhir', fhir.app)
  if (app) apps.set('app', app)
  for (const [name, server] of apps) own.add(name, server)
  return { apps, listening: () => fhir?.listening() }
}

async function openApp(
  { settings, logger, live }: Parts,
  storage: Storage,
  fetch: typeof globalThis.fetch,
): Promise<FastifyInstance> {
  const { createAppServer } = await import('../../session/index.ts')
  const { tls } = live.current
  return createAppServer({
    ...settings,
    ...storage,
    logger,
    metricsAccess: settings.metrics.access,
    fetch,
    ...(tls && { tls }),
  })
}
