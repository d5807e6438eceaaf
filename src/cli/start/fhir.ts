import { join } from 'node:path'
import type { FastifyInstance } from 'fastify'
import { CommandFailure } from '../command.ts'
import type { Closing } from './closing.ts'
import type { Parts } from './parts.ts'
import { loadSamplePatients } from './sample-patients.ts'

export interface OpenedFhir {
  readonly app: FastifyInstance
  /** To be called when the servers of this process listen: the key set can be fetched now. */
  listening(): void
}

/** The embedded FHIR server, guarded by the interceptor. It meets the auth server over HTTP, also in one process. */
export async function openFhir(parts: Parts, closing: Closing): Promise<OpenedFhir> {
  const { settings, logger } = parts
  const dataFile = join(settings.dataDir, 'fhir.db')
  const order = {
    dataFile,
    baseUrl: settings.fhirBaseUrl,
    count: settings.fhir.samplePatients,
    now: Date.now(),
  }
  const loaded = naming(dataFile, () => loadSamplePatients(order, closing))
  const [{ fhirServer }, { createInterceptor }, { smartConfiguration }] = await Promise.all([
    import('../../fhir-server/index.ts'),
    import('../../interceptor/index.ts'),
    import('../../auth/index.ts'),
    loaded,
  ])
  const interceptor = createInterceptor({
    authUrl: settings.issuerUrl,
    fhirBaseUrl: settings.fhirBaseUrl,
    contexts: settings.fhir.scopeContexts,
    searchLetter: settings.fhir.searchLetter,
    onError: error => logger.error({ err: error }, 'Interceptor failed; the request was refused'),
  })
  closing.add(() => interceptor.close())
  const app = await naming(dataFile, () =>
    fhirServer({
      baseUrl: settings.fhirBaseUrl,
      dataFile,
      guard: interceptor,
      smartConfiguration: smartConfiguration(settings),
      checks: [{ name: 'key set', check: async () => needKeySet(interceptor.ready()) }],
      logger,
      web: webOptions(parts),
    }),
  )
  return { app, listening: () => void interceptor.start() }
}

function webOptions({ settings, tls }: Parts) {
  return {
    openMetrics: settings.openMetrics,
    ...(tls && { tls }),
    ...(settings.trustProxy !== undefined && { trustProxy: settings.trustProxy }),
  }
}

// SQLite does not say which file it could not open.
async function naming<T>(dataFile: string, open: () => Promise<T>): Promise<T> {
  try {
    return await open()
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new CommandFailure(`Cannot open FHIR data ${dataFile}: ${reason}`)
  }
}

function needKeySet(ready: boolean): void {
  if (!ready) throw new Error('the key set of the auth server was not fetched yet')
}
