import type { FastifyInstance } from 'fastify'
import type { FhirAudit } from '../../audit/index.ts'
import { findMethods, limits } from '../../fhir/index.ts'
import type { Authenticator, VersionAccess } from '../../smart/index.ts'
import {
  createServer,
  type Logger,
  type Origins,
  type ReadyCheck,
  type ServerOptions,
} from '../../web/index.ts'
import type { FhirBackend } from '../backend.ts'
import { addRoutes } from './routes.ts'

export interface FhirApiOptions {
  /** The FHIR base as clients know it, without a trailing slash. */
  readonly baseUrl: string
  /** Authenticates requests. Required: an API without one would be open to everybody. */
  readonly guard: Authenticator
  /** Records every decision before the response goes out, and serves AuditEvents: the backend never does. */
  readonly audit?: FhirAudit | undefined
  /** What access to old versions depends on; by default `current`. */
  readonly versionAccess?: VersionAccess
  /** The content of `.well-known/smart-configuration`; `metadata` repeats its URLs. */
  readonly smartConfiguration: object | (() => object)
  readonly logger?: Logger
  readonly clock?: () => number
  /** What `/readyz` checks. */
  readonly checks?: readonly ReadyCheck[]
  /** The largest request body, in bytes. */
  readonly bodyLimit?: number
  /** The origins whose pages may read responses; any unless listed. */
  readonly origins?: Origins
  /** Options of every server: TLS, proxies, metrics. */
  readonly web?: Pick<ServerOptions, 'tls' | 'trustProxy' | 'openMetrics' | 'acceptsHost' | 'drainMs'>
}

/** The FHIR HTTP API on a backend, not yet listening. */
export async function createFhirApi(options: FhirApiOptions, backend: FhirBackend): Promise<FastifyInstance> {
  const { baseUrl, guard, audit, logger, checks = [], origins = '*', smartConfiguration } = options
  const { clock = Date.now, bodyLimit = limits.BODY_BYTES, versionAccess = 'current' } = options
  const basePath = new URL(baseUrl).pathname.replace(/\/$/, '')
  const isFhir = (path: string) => path === basePath || path.startsWith(`${basePath}/`)
  const app = await createServer({
    ...{ name: 'fhir', url: baseUrl, clock, bodyLimit, checks },
    errorStyle: path => (isFhir(path) ? 'fhir' : 'api'),
    // A bearer token is sent on purpose; no cookie gives access to this server.
    acceptsCrossSite: isFhir,
    allowedMethods: path =>
      isFhir(path) ? findMethods({ path: path.slice(basePath.length), query: '', headers: {} }) : undefined,
    ...(logger && { logger }),
    ...options.web,
  })
  const api = {
    ...{ guard, audit, backend, clock, baseUrl, basePath, bodyLimit, origins, versionAccess },
    smartConfiguration: evaluateLate(smartConfiguration),
  }
  await app.register(async scope => addRoutes(scope, api), { prefix: basePath })
  return app
}

export function evaluateLate(configuration: object | (() => object)): () => object {
  return () => (typeof configuration === 'function' ? configuration() : configuration)
}
