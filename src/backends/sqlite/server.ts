import type { FastifyInstance } from 'fastify'
import type { Resource } from '../../fhir/index.ts'
import { limits } from '../../fhir/index.ts'
import type { FhirBackend, LocalWrites } from '../../fhir-api/index.ts'
import {
  computeDigest,
  createAccessCache,
  createFhirApi,
  evaluateLate,
  type FhirApiOptions,
} from '../../fhir-api/index.ts'
import type { Authenticator } from '../../smart/index.ts'
import { type Authenticated, fullAccess } from '../../smart/index.ts'
import { watchAvailability } from '../../store/index.ts'
import type { ReadyCheck } from '../../web/index.ts'
import type { Context } from './call.ts'
import { capabilityJson } from './capabilities/capability-statement.ts'
import { openRepository } from './repository/open-repository.ts'
import type { Outbox } from './repository/outbox.ts'
import { openOutbox } from './repository/outbox.ts'
import type { Repository } from './repository/repository.ts'
import { resourceOf } from './repository/stored.ts'
import { openPages } from './search/pages.ts'
import { createMembership } from './search/panel-patients.ts'
import { SqliteSession } from './session.ts'

const everybody: Authenticated = {
  allowed: true,
  decide: () => ({ allowed: true, access: fullAccess, by: 'public' }),
}

/** Lets everybody do everything. */
const unguarded: Authenticator = { authenticate: () => everybody }

export interface FhirServerOptions extends Omit<FhirApiOptions, 'guard'> {
  /** `{dataDir}/fhir.db`, or `:memory:`. */
  readonly dataFile: string
  /** Who judges requests. Without one everybody may do everything. */
  readonly guard?: Authenticator
}

// The data are our own, so that most are known again by themselves: a digest of each would take longer.
const JUDGED = 2_000
const LONG = 8_192

/** The FHIR server on its data, not yet listening. Closing it closes the data. */
export async function fhirServer(options: FhirServerOptions): Promise<FastifyInstance> {
  const { baseUrl, dataFile, guard = unguarded, clock = Date.now, checks = [] } = options
  const repository = openRepository({ file: dataFile, baseUrl, clock, mostRows: limits.INDEX_ROWS })
  const outbox = options.audit && openOutbox(repository.database, options.audit, clock)
  const app = await createFhirApi(
    { ...options, guard, clock, checks: [dataCheck(repository, clock), ...checks] },
    createBackend(contextOf(options, repository, clock), outbox),
  )
  app.addHook('onClose', async () => {
    await outbox?.close()
    repository.close()
  })
  return app
}

function contextOf(options: FhirServerOptions, repository: Repository, clock: () => number): Context {
  const { baseUrl, smartConfiguration } = options
  return {
    repository,
    baseUrl,
    clock,
    versionAccess: options.versionAccess ?? 'current',
    pages: openPages(repository.database),
    membership: createMembership(repository),
    accessCache: createAccessCache(JUDGED, text => (text.length > LONG ? computeDigest(text) : text)),
    smartConfiguration: evaluateLate(smartConfiguration),
    capabilities: capabilityJson(baseUrl, evaluateLate(smartConfiguration)),
  }
}

function dataCheck({ database }: Repository, clock: () => number): ReadyCheck {
  const tryWrite = () => {
    database.exec("INSERT INTO audit_outbox VALUES ('probe', '')")
    database.exec("DELETE FROM audit_outbox WHERE id = 'probe'")
  }
  const { probe } = watchAvailability({ tryWrite: () => database.group(tryWrite), clock })
  return { name: 'data', check: probe }
}

/** The resources in one SQLite file as a backend of the FHIR API. */
function createBackend(context: Context, outbox: Outbox | undefined): FhirBackend {
  const local = createLocalWrites(context, outbox)
  return {
    forRequest: request => new SqliteSession(context, request, outbox, local),
    capabilities: context.capabilities,
    pages: context.pages,
    accessCache: context.accessCache,
    findStored: (type, id, version) => findStored(context, type, id, version),
  }
}

function createLocalWrites({ repository }: Context, outbox: Outbox | undefined): LocalWrites {
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

function findStored(
  { repository }: Context,
  type: string,
  id: string,
  version?: string,
): Resource | undefined {
  const stored = version === undefined ? repository.find(type, id) : repository.findVersion(type, id, version)
  return stored && resourceOf(stored)
}
