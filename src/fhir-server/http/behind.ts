import type { FastifyReply } from 'fastify'
import { auditRefusal, isAboutAudit } from '../../audit/index.ts'
import { type Asked, type Behind, sendBody } from '../../door/index.ts'
import { type EntryInteraction, isWriting, type Resource } from '../../fhir/index.ts'
import { type Answer, headersOf } from '../answer.ts'
import type { Call, Context } from '../call.ts'
import { handle } from '../handle.ts'
import { bundle } from '../interactions/bundle.ts'
import { answerOf, type Problem } from '../problem.ts'
import { resourceOf } from '../repository/stored.ts'
import { isStorageTrouble } from '../repository/trouble.ts'

/** The server as it stands behind the door. */
export function behindDoor(context: Context): Behind<Answer, Problem> {
  return {
    perform: asked => perform(context, asked),
    answerOf,
    rosterOf: () => context.roster,
    answerFrom: trail => trail,
    told: ({ status, body, location, removed }) => ({ status, answer: body, location: location ?? removed }),
    kept: (type, id, version) => keptIn(context, type, id, version),
    isPassing: isStorageTrouble,
    send,
  }
}

/** Answers when everything that the answer tells of is on the disk. */
function perform(context: Context, asked: Asked): Answer | Problem | Promise<Answer | Problem> {
  const { database } = context.repository
  if (!isOne(asked)) return bundle(context, asked)
  const { interaction } = asked
  const work = () => handle(context, asked)
  if (!isWriting(interaction)) return database.beside(work)
  if (isAboutAudit(interaction)) return auditRefusal(interaction)
  return database.group(work)
}

/** Whether it is no Bundle. */
function isOne(asked: Asked): asked is Asked & Call<EntryInteraction> {
  return asked.interaction.kind !== 'bundle'
}

function keptIn({ repository }: Context, type: string, id: string, version?: string): Resource | undefined {
  const stored = version === undefined ? repository.find(type, id) : repository.findVersion(type, id, version)
  return stored && resourceOf(stored)
}

function send(reply: FastifyReply, answer: Answer): FastifyReply | Promise<FastifyReply> {
  reply.code(answer.status).headers(headersOf(answer))
  return answer.body === undefined ? reply.send() : sendBody(reply, answer.body)
}
