import type { FastifyInstance } from 'fastify'
import type { FhirAudit } from '../../audit/index.ts'
import { type AnyProblem, findMethods, limits } from '../../fhir/index.ts'
import type { Authenticator, VersionAccess } from '../../smart/index.ts'
import {
  createServer,
  type Logger,
  type Origins,
  type ReadyCheck,
  type ServerOptions,
} from '../../web/index.ts'
import type { Behind } from '../behind.ts'
import { addRoutes } from './routes.ts'

export interface FhirApiOptions {
  /** The FHIR base as clients know it, without a trailing slash. */
  readonly baseUrl: string
  /** Who judges requests. A door without one would be a hole. */
  readonly guard: Authenticator
  /** Keeps what was decided before it is answered, and answers AuditEvents: never what is behind (contract 5.8). */
  readonly audit?: FhirAudit | undefined
  /** What old versions are judged by; by default `current`. */
  readonly versionAccess?: VersionAccess
  readonly logger?: Logger
  readonly clock?: () => number
  /** What `/readyz` looks at. */
  readonly checks?: readonly ReadyCheck[]
  /** The largest body that is read, in bytes. */
  readonly bodyLimit?: number
  /** The origins whose pages may read answers; any unless listed. */
  readonly origins?: Origins
  /** What the common base of the servers takes further: TLS, proxies, metrics. */
  readonly web?: Pick<ServerOptions, 'tls' | 'trustProxy' | 'openMetrics' | 'acceptsHost' | 'drainMs'>
}

/** A FHIR server with its door, not yet listening. */
export async function createFhirApi<A extends object, P extends AnyProblem>(
  options: FhirApiOptions,
  behind: Behind<A, P>,
): Promise<FastifyInstance> {
  const { baseUrl, guard, audit, logger, checks = [], origins = '*' } = options
  const { clock = Date.now, bodyLimit = limits.BODY_BYTES } = options
  const basePath = new URL(baseUrl).pathname.replace(/\/$/, '')
  const isFhir = (path: string) => path === basePath || path.startsWith(`${basePath}/`)
  const app = await createServer({
    ...{ name: 'fhir', url: baseUrl, clock, bodyLimit, checks },
    errorStyle: path => (isFhir(path) ? 'fhir' : 'api'),
    // A bearer token is sent on purpose; no cookie opens this server.
    acceptsCrossSite: isFhir,
    allowedMethods: path =>
      isFhir(path) ? findMethods({ path: path.slice(basePath.length), query: '', headers: {} }) : undefined,
    ...(logger && { logger }),
    ...options.web,
  })
  await app.register(
    async scope => addRoutes(scope, { guard, audit, behind, clock, baseUrl, basePath, bodyLimit, origins }),
    { prefix: basePath },
  )
  return app
}
