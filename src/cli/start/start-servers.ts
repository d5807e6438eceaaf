import type { FastifyInstance } from 'fastify'
import { startDraining } from '../../web/index.ts'
import { userReachOf } from '../policy-file.ts'
import { openApp } from './app.ts'
import { openAuth, type TestLogin } from './auth.ts'
import { bindServer } from './bind.ts'
import { Closing } from './closing.ts'
import { openFhir } from './fhir.ts'
import { openKeeping, type Parts } from './parts.ts'
import type { ServerName } from './server-names.ts'

/** Servers that listen. */
export interface Running {
  readonly testLogin: TestLogin | undefined
  /** Says in `/readyz` that the servers are about to stop; they serve on. */
  drain(): void
  /** Lets running requests finish, then closes everything. */
  close(): Promise<void>
}

/** Opens and binds the servers. When one of them cannot start, the others are closed again. */
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
  // A file that a setting names is read before anything is made.
  const userFilter = names.includes('fhir') ? userReachOf(parts.settings) : undefined
  const keeping = openKeeping(parts, closing)
  // Side by side: the first start makes an RSA key in one thread and the sample patients in another.
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
