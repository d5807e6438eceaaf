import { join } from 'node:path'
import type { FastifyInstance } from 'fastify'
import type { Settings } from '../../config/index.ts'
import { CommandFailure } from '../command.ts'
import type { Closing } from './closing.ts'
import type { Parts } from './parts.ts'

export interface OpenedFhir {
  readonly app: FastifyInstance
  /** To be called when the servers of this process listen: the key set can be fetched now. */
  listening(): void
}

/** The embedded FHIR server, guarded by the interceptor. It meets the auth server over HTTP, also in one process. */
export async function openFhir({ settings, logger, tls }: Parts, closing: Closing): Promise<OpenedFhir> {
  const { fhirServer } = await import('../../fhir-server/index.ts')
  const { createInterceptor } = await import('../../interceptor/index.ts')
  const { smartConfiguration } = await import('../../auth/index.ts')
  const interceptor = createInterceptor({
    authUrl: settings.issuerUrl,
    fhirBaseUrl: settings.fhirBaseUrl,
    contexts: settings.fhir.scopeContexts,
    searchLetter: settings.fhir.searchLetter,
    onError: error => logger.error({ err: error }, 'Interceptor failed; the request was refused'),
  })
  closing.add(() => interceptor.close())
  const dataFile = join(settings.dataDir, 'fhir.db')
  const app = await naming(dataFile, async () => {
    await loadSamplePatients(settings, dataFile)
    return fhirServer({
      baseUrl: settings.fhirBaseUrl,
      dataFile,
      guard: interceptor,
      smartConfiguration: smartConfiguration(settings),
      checks: [{ name: 'key set', check: async () => needKeySet(interceptor.ready()) }],
      logger,
      web: {
        openMetrics: settings.openMetrics,
        ...(tls && { tls }),
        ...(settings.trustProxy !== undefined && { trustProxy: settings.trustProxy }),
      },
    })
  })
  return { app, listening: () => void interceptor.start() }
}

/** Contract 3: on first start of the embedded server. In one transaction, so that a start that is cut short begins anew. */
async function loadSamplePatients(settings: Settings, dataFile: string): Promise<void> {
  const count = settings.fhir.samplePatients
  if (count === 0) return
  const { openRepository } = await import('../../fhir-server/index.ts')
  const repository = openRepository({ file: dataFile, baseUrl: settings.fhirBaseUrl })
  try {
    if (repository.count() > 0) return
    const { samplePatients } = await import('../../fhir-server/sample/index.ts')
    repository.load(samplePatients({ count, now: Date.now() }))
  } finally {
    repository.close()
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
