import type { Resource } from '../../fhir/index.ts'
import type { FhirBackend, LocalWrites } from '../../fhir-api/index.ts'
import type { Context } from './call.ts'
import type { Outbox } from './repository/outbox.ts'
import { resourceOf } from './repository/stored.ts'
import { SqliteSession } from './session.ts'

/** The resources in one SQLite file as a backend of the FHIR API. */
export function createBackend(context: Context, outbox: Outbox | undefined): FhirBackend {
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
