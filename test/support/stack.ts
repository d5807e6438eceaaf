import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { FastifyInstance } from 'fastify'
import {
  type Auditor,
  createAuditor,
  createFhirAudit,
  noAudit,
  type StoreAuditor,
} from '../../src/audit/index.ts'
import { buildSmartConfiguration, createAuthServer, initialize } from '../../src/auth/index.ts'
import { keepFirstSigningKey } from '../../src/auth/oauth/keys/signing-key.ts'
import { fhirServer, openRepository } from '../../src/backends/sqlite/index.ts'
import { createExplainRequest } from '../../src/cli/start/auth.ts'
import { createHostCheck, ensureSecret, readSettings, type Settings } from '../../src/config/index.ts'
import type { Resource } from '../../src/fhir/index.ts'
import { applyTokenFailures, createInterceptor } from '../../src/interceptor/index.ts'
import { samplePatients } from '../../src/sample-patients/index.ts'
import { createAppServer } from '../../src/session/index.ts'
import { createSealer, openStore, type Store } from '../../src/store/index.ts'
import { createLogger, type Logger, listen } from '../../src/web/http/index.ts'
import { freePorts } from './free-ports.ts'
import { rsaPair } from './rsa-pair.ts'
import { openSqliteStore } from './sqlite-store.ts'

export interface StackOptions {
  /** Settings besides the URLs, as environment variables. */
  readonly env?: Readonly<Record<string, string>>
  readonly clock?: () => number
  /** Resources besides the sample patients. */
  readonly resources?: readonly Resource[]
}

/** The three servers, listening, with sample patients and a database of their own. */
export interface Stack {
  readonly settings: Settings
  readonly store: Store
  /** Keeps the audit trail; anonymous requests are counted until it is flushed. */
  readonly audit: Pick<StoreAuditor, 'flush'>
  readonly auth: FastifyInstance
  readonly fhir: FastifyInstance
  readonly app: FastifyInstance
  readonly user: { readonly username: string; readonly password: string; readonly name: string }
  /** All log lines so far. */
  readonly log: () => string
  close(): Promise<void>
}

/** A bcrypt cost that a test can wait for. */
const PASSWORD_COST = 4

/** Starts what `npm start` starts, in this process, on free ports of `localhost`. */
export async function startStack({
  env = {},
  clock = Date.now,
  resources = [],
}: StackOptions = {}): Promise<Stack> {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-stack-'))
  const settings = await settingsFor(folder, env)
  const isSqlite = settings.databaseUrl.startsWith('sqlite:')
  const store = await (isSqlite ? openSqliteStore : openStore)(settings.databaseUrl)
  const { logger, log } = collectedLog()
  const seal = createSealer(ensureSecret(settings))
  const counting = createAuditor({ store, failure: settings.audit.failure, clock })
  const audit = settings.audit.kept ? counting : noAudit
  await keepFirstSigningKey(store, seal, rsaPair().privateKey, clock())
  await initialize({ settings, store, sealer: seal, clock, passwordCost: PASSWORD_COST })
  const explainRequest = await createExplainRequest(settings, undefined)
  const auth = await createAuthServer({
    settings,
    store,
    sealer: seal,
    audit,
    clock,
    logger,
    explainRequest,
    passwordCost: PASSWORD_COST,
  })
  await listen(auth, settings.authPort, ['127.0.0.1', '::1'])
  const { fhir, closeGuard } = await guardedFhirServer(settings, folder, clock, logger, {
    store,
    audit,
    resources,
  })
  await listen(fhir, settings.fhirPort, ['127.0.0.1', '::1'])
  const app = await createAppServer({ ...settings, store, sealer: seal, audit, clock, logger })
  await listen(app, settings.appPort, ['127.0.0.1', '::1'])
  return {
    settings,
    store,
    auth,
    fhir,
    app,
    log,
    audit: counting,
    user: { username: 'clinician', password: settings.seedClinicianPassword, name: 'Dr. Robin Ahmadi' },
    async close() {
      closeGuard()
      await Promise.all([app.close(), fhir.close(), auth.close()])
      await store.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

async function settingsFor(folder: string, env: Readonly<Record<string, string>>): Promise<Settings> {
  const [auth, fhir, app] = await freePorts(3)
  return readSettings(
    {
      SMART_ISSUER_URL: `http://localhost:${auth}`,
      SMART_FHIR_BASE_URL: `http://localhost:${fhir}/fhir`,
      SMART_APP_URL: `http://localhost:${app}`,
      SMART_DATA_DIR: folder,
      SMART_SAMPLE_PATIENTS: '5',
      ...env,
    },
    folder,
  )
}

async function guardedFhirServer(
  settings: Settings,
  folder: string,
  clock: () => number,
  logger: Logger,
  {
    store,
    audit,
    resources,
  }: { readonly store: Store; readonly audit: Auditor; readonly resources: readonly Resource[] },
) {
  const { fhirBaseUrl, issuerUrl, fhir } = settings
  const dataFile = join(folder, 'fhir.db')
  const repository = openRepository({ file: dataFile, baseUrl: fhirBaseUrl, clock })
  repository.load([...samplePatients({ count: fhir.samplePatients, now: clock() }), ...resources])
  repository.close()
  const guard = createInterceptor({
    authUrl: issuerUrl,
    fhirBaseUrl,
    contexts: fhir.scopeContexts,
    searchPermission: fhir.searchPermission,
    clock,
  })
  await guard.start()
  return {
    fhir: await fhirServer({
      baseUrl: fhirBaseUrl,
      dataFile,
      logger,
      clock,
      guard: settings.developerTools ? applyTokenFailures(guard) : guard,
      audit: createFhirAudit({ auditor: audit, store, fhirBaseUrl }),
      smartConfiguration: buildSmartConfiguration(settings),
      web: { acceptsHost: createHostCheck(settings) },
    }),
    closeGuard: () => guard.close(),
  }
}

function collectedLog(): { logger: Logger; log: () => string } {
  let lines = ''
  const destination = {
    write(line: string) {
      lines += line
    },
  }
  return { logger: createLogger({ level: 'debug', destination }), log: () => lines }
}
