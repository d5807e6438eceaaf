import type { FastifyReply } from 'fastify'
import { auditRefusal, type Delivery, isAboutAudit } from '../../../audit/index.ts'
import { type EntryInteraction, isRecord, isWriting, type Resource } from '../../../fhir/index.ts'
import {
  type Audited,
  type Behind,
  type FhirRequest,
  type PerformedChange,
  sendBody,
  sendContent,
} from '../../../fhir-api/index.ts'
import { type Answer, headersOf } from '../answer.ts'
import type { Call, Context } from '../call.ts'
import { handle } from '../handle.ts'
import { bundle, type Commit } from '../interactions/bundle.ts'
import { answerOf, type Problem } from '../problem.ts'
import type { Outbox } from '../repository/outbox.ts'
import { resourceOf } from '../repository/stored.ts'

/** The server as it stands behind the door. */
export function behindDoor(context: Context, outbox: Outbox | undefined): Behind<Answer, Problem> {
  return {
    perform: asked => perform(context, asked),
    ...(outbox && {
      performRecorded: (asked, audited) => performRecorded(context, outbox, asked, audited),
    }),
    answerOf,
    rosterOf: () => context.membership,
    answerFrom: trail => trail,
    told: ({ status, body, location, removed }) => ({ status, answer: body, location: location ?? removed }),
    kept: (type, id, version) => keptIn(context, type, id, version),
    send,
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
  { recordsOf, begun }: Audited<Answer | Problem>,
): Promise<PerformedChange<Answer | Problem>> {
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

function keptIn({ repository }: Context, type: string, id: string, version?: string): Resource | undefined {
  const stored = version === undefined ? repository.find(type, id) : repository.findVersion(type, id, version)
  return stored && resourceOf(stored)
}

function send(reply: FastifyReply, answer: Answer): FastifyReply | Promise<FastifyReply> {
  const { interaction } = reply.request
  reply.code(answer.status).headers(headersOf(answer))
  if (answer.content && interaction && 'id' in interaction)
    return sendContent(reply, interaction.id ?? '', answer.content)
  return answer.body === undefined ? reply.send() : sendBody(reply, answer.body)
}
