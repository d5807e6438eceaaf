import type { FastifyInstance } from 'fastify'
import type { FhirAudit } from '../audit/index.ts'
import { digestOf, type Guard, judgedBefore } from '../consent/index.ts'
import { createServer, type Logger, type Origins, type ReadyCheck, type ServerOptions } from '../web/index.ts'
import type { Context } from './call.ts'
import { capabilityJson } from './capabilities/capability-statement.ts'
import { handle } from './handle.ts'
import { serveFhir } from './http/route.ts'
import { openRepository, type Repository } from './repository/repository.ts'
import { openPages } from './search/pages.ts'
import { rosterOf } from './search/panel-patients.ts'

export interface FhirServerOptions {
  /** The FHIR base as clients know it, without a trailing slash. */
  readonly baseUrl: string
  /** `{dataDir}/fhir.db`, or `:memory:`. */
  readonly dataFile: string
  /** Who judges requests. Without one everybody may do everything. */
  readonly guard?: Guard
  /** Keeps what was decided before it is answered, and answers AuditEvents. */
  readonly audit?: FhirAudit | undefined
  /** What `.well-known/smart-configuration` answers; `metadata` takes its addresses over. */
  readonly smartConfiguration: Readonly<Record<string, unknown>> | (() => object)
  readonly logger?: Logger
  readonly clock?: () => number
  /** What `/readyz` looks at beside the data: the guard's key set, say. */
  readonly checks?: readonly ReadyCheck[]
  /** The largest body that is read, in bytes. */
  readonly bodyLimit?: number
  /** The origins whose pages may read answers; any unless listed. */
  readonly origins?: Origins
  /** What the common base of the servers takes further: TLS, proxies, metrics. */
  readonly web?: Pick<ServerOptions, 'tls' | 'trustProxy' | 'openMetrics' | 'drainMs'>
}

const BODY_LIMIT = 16 * 1024 * 1024
// The data are our own, so that most are known again by themselves: a digest of each would take longer.
const JUDGED = 2_000
const LONG = 8_192

/** The FHIR server on its data, not yet listening. Closing it closes the data. */
export async function fhirServer(options: FhirServerOptions): Promise<FastifyInstance> {
  const { baseUrl, dataFile, guard, logger, clock = Date.now, bodyLimit = BODY_LIMIT } = options
  const repository = openRepository({ file: dataFile, baseUrl, clock })
  const basePath = new URL(baseUrl).pathname.replace(/\/$/, '')
  const isFhir = (path: string) => path === basePath || path.startsWith(`${basePath}/`)
  const app = await createServer({
    name: 'fhir',
    url: baseUrl,
    clock,
    bodyLimit,
    checks: [dataCheck(repository), ...(options.checks ?? [])],
    errorStyle: path => (isFhir(path) ? 'fhir' : 'api'),
    // A bearer token is sent on purpose; no cookie opens this server.
    acceptsCrossSite: isFhir,
    ...(logger && { logger }),
    ...options.web,
  })
  const context = contextOf(options, repository, clock)
  await app.register(
    async scope =>
      serveFhir(scope, {
        context,
        guard,
        audit: options.audit,
        basePath,
        bodyLimit,
        origins: options.origins ?? '*',
      }),
    { prefix: basePath },
  )
  app.addHook('onClose', async () => repository.close())
  return app
}

function contextOf(options: FhirServerOptions, repository: Repository, clock: () => number): Context {
  const { baseUrl, smartConfiguration } = options
  const configuration =
    typeof smartConfiguration === 'function' ? smartConfiguration : () => smartConfiguration
  return {
    repository,
    baseUrl,
    clock,
    handle,
    pages: openPages(repository.database),
    roster: rosterOf(repository),
    judgedBefore: judgedBefore(JUDGED, text => (text.length > LONG ? digestOf(text) : text)),
    smartConfiguration: configuration,
    capabilities: capabilityJson(baseUrl, configuration),
  }
}

function dataCheck(repository: Repository): ReadyCheck {
  return {
    name: 'data',
    check: async () => {
      repository.database.rows('SELECT 1 FROM resource LIMIT 1', [])
    },
  }
}
