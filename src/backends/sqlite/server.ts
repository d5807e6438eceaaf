import { randomBytes } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import {
  getOperationDefinition,
  limits,
  listOperations,
  listSearchParameters,
  operations,
  resourceTypes,
} from '../../fhir/index.ts'
import {
  AUDIT_SECTION,
  BULK_DATA,
  COMPARTMENTS,
  createAccessCache,
  createFhirApi,
  createOnce,
  createPages,
  createSecuritySection,
  describeExport,
  describeParameters,
  describeProfiles,
  evaluateLate,
  type FhirApiOptions,
  type FhirBackend,
  type LocalWrites,
  type Pages,
  SYSTEM_INTERACTIONS,
  TYPE_INTERACTIONS,
  US_CORE_SERVER,
} from '../../fhir-api/index.ts'
import { type Authenticated, type Authenticator, fullAccess } from '../../smart/index.ts'
import { createSealer, makeSpaceText, watchAvailability } from '../../store/index.ts'
import type { ReadyCheck } from '../../web/http/index.ts'
import { version } from '../../web/ui/index.ts'
import type { Database } from './repository/database.ts'
import { type Outbox, openOutbox } from './repository/outbox.ts'
import type { Repository } from './repository/repository.ts'
import { openRepository } from './repository/repository.ts'
import { createMembership } from './search/planner/access-condition.ts'
import { type SqliteContext, SqliteSession } from './session.ts'

const everybody: Authenticated = {
  allowed: true,
  decide: () => ({ allowed: true, access: fullAccess, by: 'public' }),
}

/** Allows everybody everything. */
const unguarded: Authenticator = { authenticate: () => everybody }

export interface FhirServerOptions extends Omit<FhirApiOptions, 'guard'> {
  /** `{dataDir}/fhir.db`, or `:memory:`. */
  readonly dataFile: string
  /** Decides requests. Without one everybody may do everything. */
  readonly guard?: Authenticator
}

/** The FHIR server on its data, not yet listening. Closing it closes the data. */
export async function fhirServer(options: FhirServerOptions): Promise<FastifyInstance> {
  const { baseUrl, dataFile, guard = unguarded, clock = Date.now, checks = [] } = options
  const repository = openRepository({ file: dataFile, baseUrl, clock, maxRows: limits.INDEX_ROWS })
  const outbox = options.audit && openOutbox(repository.database, options.audit, clock)
  const app = await createFhirApi(
    { ...options, guard, clock, checks: [createDataCheck(repository, clock), ...checks] },
    createBackend(options, repository, outbox),
  )
  app.addHook('onClose', async () => {
    await outbox?.close()
    repository.close()
  })
  return app
}

function createDataCheck({ database }: Repository, clock: () => number): ReadyCheck {
  const tryWrite = async (mayBeFull: boolean) => {
    await database.group(() => {
      database.exec("INSERT INTO audit_outbox (id, record) VALUES ('probe', '')")
      database.exec("DELETE FROM audit_outbox WHERE id = 'probe'")
    })
    if (!mayBeFull) return
    await database.group(() =>
      database.exec(`INSERT OR REPLACE INTO setting (name, value) VALUES ('space', '${makeSpaceText()}')`),
    )
    await database.group(() => database.exec("DELETE FROM setting WHERE name = 'space'"))
  }
  const { probe, report } = watchAvailability({ tryWrite, clock })
  let failures = 0
  const check = () => {
    if (database.countFailures() !== failures) report(database.lastFailure)
    failures = database.countFailures()
    return probe()
  }
  return { name: 'data', check }
}

/** The resources in one SQLite file as a backend of the FHIR API. */
function createBackend(
  { baseUrl, smartConfiguration, versionAccess = 'current', clock = Date.now, exports }: FhirServerOptions,
  repository: Repository,
  outbox: Outbox | undefined,
): FhirBackend {
  const { database } = repository
  const local = createLocalWrites(repository, outbox)
  const membership = createMembership(repository)
  const context: SqliteContext = { repository, outbox, local, membership, versionAccess, clock }
  return {
    forRequest: request => new SqliteSession(context, request),
    capabilities: createCapabilities(baseUrl, evaluateLate(smartConfiguration), exports !== undefined),
    pages: openPages(database),
    accessCache: createAccessCache(),
  }
}

function createLocalWrites(repository: Repository, outbox: Outbox | undefined): LocalWrites {
  const { database } = repository
  return {
    newId: () => repository.newId(),
    plan: work => database.plan(work),
    ...(outbox && {
      async announce(records) {
        const announced = await database.group(() => outbox.add(records))
        return { complete: final => outbox.complete(announced, final) }
      },
    }),
  }
}

// The values of a few sort keys, for several pages.
const POSITION_CHARACTERS = 384

/** The key of page links is stored with the data, so that links survive a restart. */
function openPages(database: Database): Pages {
  const sealer = createSealer(Buffer.from(openPageKey(database)).toString('base64url'))
  return createPages(sealer, '_page', 'paging link of the embedded server', POSITION_CHARACTERS)
}

function openPageKey(database: Database): Uint8Array {
  return database.transaction(() => {
    const key = randomBytes(32)
    database.rows(`INSERT OR IGNORE INTO setting (name, value) VALUES ('page-key', ?)`, [key])
    const [row] = database.rows(`SELECT value FROM setting WHERE name = 'page-key'`, [])
    return row?.[0] instanceof Uint8Array ? row[0] : key
  })
}

// The statement changes with the software version only.
const DATE = '2026-01-01'

/** The CapabilityStatement as JSON, built again only when the SMART configuration has changed. */
function createCapabilities(
  baseUrl: string,
  smartConfiguration: () => object,
  exports: boolean,
): () => string {
  const format = createOnce((configuration: object) =>
    JSON.stringify(describeCapabilities(baseUrl, configuration, exports)),
  )
  return () => format(smartConfiguration())
}

/** All types are alike except AuditEvent; each has the search parameters that are indexed. */
function describeCapabilities(baseUrl: string, smartConfiguration: object, exports: boolean): object {
  return {
    resourceType: 'CapabilityStatement',
    status: 'active',
    date: DATE,
    kind: 'instance',
    instantiates: [US_CORE_SERVER, ...(exports ? [BULK_DATA] : [])],
    software: { name: 'Sallyport', version },
    implementation: { description: 'Sallyport FHIR R4 server', url: baseUrl },
    fhirVersion: '4.0.1',
    format: ['application/fhir+json', 'json'],
    patchFormat: ['application/json-patch+json', 'application/fhir+json'],
    rest: [
      {
        mode: 'server',
        security: createSecuritySection(smartConfiguration),
        resource: resourceTypes.map(type => describeType(type, exports)),
        interaction: SYSTEM_INTERACTIONS.map(code => ({ code })),
        searchParam: describeParameters('Basic').filter(({ name }) => name.startsWith('_')),
        ...(exports && { operation: describeExport() }),
        compartment: COMPARTMENTS,
      },
    ],
  }
}

function describeType(type: string, exports: boolean): object {
  if (type === AUDIT_SECTION.type) return AUDIT_SECTION
  const references = listSearchParameters(type).filter(it => it.type === 'reference')
  return {
    type,
    ...describeProfiles(type),
    interaction: TYPE_INTERACTIONS.map(code => ({ code })),
    versioning: 'versioned-update',
    readHistory: true,
    updateCreate: true,
    conditionalCreate: true,
    conditionalRead: 'full-support',
    conditionalUpdate: true,
    conditionalDelete: 'single',
    referencePolicy: ['literal', 'local'],
    ...(references.length > 0 && { searchInclude: references.map(({ code }) => `${type}:${code}`) }),
    searchParam: describeParameters(type),
    operation: [
      ...listOperations(operations, type).map(name => ({
        name,
        definition: getOperationDefinition(type, name),
      })),
      ...(exports ? describeExport(type) : []),
    ],
  }
}
