import type { FastifyInstance } from 'fastify'
import type { Settings } from '../../config/index.ts'
import { listen, startDraining } from '../../web/index.ts'
import { CommandFailure } from '../command.ts'
import { openAuth, type TestLogin } from './auth.ts'
import { openFhir } from './fhir.ts'
import { Closing, type Keeping, openKeeping, type Parts, type ServerName } from './parts.ts'
import { createReportingFetch } from './relay-configuration.ts'
import { readUserFilter } from './trusted-issuers.ts'

const PORTS = {
  auth: ['authPort', 'SMART_AUTH_PORT'],
  fhir: ['fhirPort', 'SMART_FHIR_PORT'],
  app: ['appPort', 'SMART_APP_PORT'],
} as const

async function bindServer(name: ServerName, app: FastifyInstance, settings: Settings): Promise<void> {
  const [key, variable] = PORTS[name]
  try {
    await listen(app, settings[key], settings.bind)
  } catch (error) {
    const where = `port ${settings[key]} (${variable}) of ${settings.bind.join(', ')} (SMART_BIND)`
    throw new CommandFailure(`Cannot start the ${name} server on ${where}: ${reasonOf(error)}`)
  }
}

function reasonOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  return REASONS[code] ?? (error instanceof Error ? error.message : String(error))
}

const REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'the port is in use',
  EACCES: 'permission denied',
  EADDRNOTAVAIL: 'this host does not have the address',
}

interface Running {
  readonly testLogin: TestLogin | undefined
  /** `/readyz` reports that the servers are about to stop; they keep serving. */
  drain(): void
  close(): Promise<void>
}

/** If one server cannot start, the others are closed again. */
export async function startServers(names: readonly ServerName[], parts: Parts): Promise<Running> {
  const closing = new Closing()
  try {
    const { apps, testLogin, ready } = await openServers(names, parts, closing)
    closing.add(() => Promise.all([...apps.values()].map(app => app.close())))
    const [found] = await Promise.all([
      testLogin,
      ...[...apps].map(([name, app]) => bindServer(name, app, parts.settings)),
    ])
    ready()
    const drain = () => {
      for (const app of apps.values()) startDraining(app)
    }
    return { testLogin: found, drain, close: () => closing.close() }
  } catch (error) {
    await closing.close().catch(() => {})
    throw error
  }
}

async function openServers(names: readonly ServerName[], parts: Parts, closing: Closing) {
  // Files named by settings are read before anything is created.
  const userFilter = names.includes('fhir') ? readUserFilter(parts.settings) : undefined
  const keeping = openKeeping(parts, closing)
  // In parallel: the first start creates an RSA key in one thread and the sample patients in another.
  const [auth, fhir, app] = await Promise.all([
    names.includes('auth') ? keeping.then(kept => openAuth(parts, kept)) : undefined,
    names.includes('fhir') ? openFhir(parts, { keeping, userFilter }, closing) : undefined,
    names.includes('app') ? keeping.then(kept => openApp(parts, kept)) : undefined,
  ])
  const apps = new Map<ServerName, FastifyInstance>()
  if (auth) apps.set('auth', auth.app)
  if (fhir) apps.set('fhir', fhir.app)
  if (app) apps.set('app', app)
  return { apps, testLogin: auth?.testLogin, ready: () => fhir?.listening() }
}

async function openApp({ settings, logger, tls }: Parts, keeping: Keeping): Promise<FastifyInstance> {
  const { createAppServer } = await import('../../session/index.ts')
  return createAppServer({
    ...settings,
    ...keeping,
    logger,
    fetch: createReportingFetch(fetch, logger),
    ...(tls && { tls }),
  })
}
