import { auditRefusal, type Delivery, isAboutAudit } from '../../audit/index.ts'
import { type EntryInteraction, isRecord, isWriting, type Resource } from '../../fhir/index.ts'
import type {
  Audited,
  BackendSession,
  FhirBackend,
  FhirRequest,
  PerformedChange,
} from '../../fhir-api/index.ts'
import type { Answer } from './answer.ts'
import type { Call, Context } from './call.ts'
import { handle } from './handle.ts'
import { bundle, type Commit } from './interactions/bundle.ts'
import type { Problem } from './problem.ts'
import type { Outbox } from './repository/outbox.ts'
import { resourceOf } from './repository/stored.ts'
import { SqliteSession } from './session.ts'

/** The resources in one SQLite file as a backend of the FHIR API. */
export function createBackend(context: Context, outbox: Outbox | undefined): FhirBackend {
  return {
    forRequest: request => new Session(context, request, outbox),
    capabilities: context.capabilities,
    pages: context.pages,
    accessCache: context.accessCache,
    findStored: (type, id, version) => findStored(context, type, id, version),
  }
}

class Session extends SqliteSession implements BackendSession {
  readonly perform: BackendSession['perform']
  readonly performRecorded?: NonNullable<BackendSession['performRecorded']>

  constructor(context: Context, request: FhirRequest, outbox: Outbox | undefined) {
    super(context, request)
    this.perform = (_context, it) => perform(context, it)
    if (outbox)
      this.performRecorded = (_context, it, audited) => performRecorded(context, outbox, it, audited)
  }
}

/** Answers when everything that the answer tells of is on the disk. */
function perform(context: Context, asked: FhirRequest): Answer | Problem | Promise<Answer | Problem> {
  const { database } = context.repository
  if (!isOne(asked)) return bundle(context, asked)
  const { interaction } = asked
  const work = () => handle(context, asked)
  if (!isWriting(interaction)) return database.beside(work)
  if (isAboutAudit(interaction)) return auditRefusal(interaction)
  return database.group(work)
}

/**
 * Makes a change in one transaction with its audit records, and answers when both are durable. The entries of a batch
 * are transactions of their own: it is announced before the first of them, and its records take the place of that.
 */
async function performRecorded(
  context: Context,
  outbox: Outbox,
  asked: FhirRequest,
  { recordsOf, begun }: Audited,
): Promise<PerformedChange> {
  const { database } = context.repository
  if (isOne(asked) && !isWriting(asked.interaction))
    return { outcome: await perform(context, asked), recorded: false }
  if (isBatch(asked)) {
    const announced = await database.group(() => outbox.add(begun()))
    const outcome = await bundle(context, asked).catch(async error => {
      // Nothing was made. The failure is recorded as that of any request.
      await outbox.complete(announced, [])
      throw error
    })
    await outbox.complete(announced, recordsOf(outcome))
    return { outcome, recorded: true }
  }
  let deliveries: readonly Delivery[] | undefined
  const commit: Commit = async work => {
    const { outcome, added } = await database.group(() =>
      database.transaction(() => {
        const result = work()
        return { outcome: result, added: outbox.add(recordsOf(result)) }
      }),
    )
    deliveries = added
    return outcome
  }
  const outcome = await (isOne(asked) ? commit(() => handle(context, asked)) : bundle(context, asked, commit))
  if (deliveries) await outbox.deliver(deliveries)
  return { outcome, recorded: deliveries !== undefined }
}

function isBatch(asked: FhirRequest): boolean {
  return !isOne(asked) && isRecord(asked.body) && asked.body.type === 'batch'
}

/** Whether it is not a Bundle. */
function isOne(asked: FhirRequest): asked is FhirRequest & Call<EntryInteraction> {
  return asked.interaction.kind !== 'bundle'
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
