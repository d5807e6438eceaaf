import type { FastifyReply } from 'fastify'
import { type Behind, sendBody, sendContent } from '../../../fhir-api/index.ts'
import type { Answer } from '../answer.ts'
import type { Context } from '../call.ts'
import { handle } from '../handle.ts'
import { answerOf, type Problem } from '../problem.ts'

/** The gateway as it stands behind the door. */
export function behindDoor(context: Context): Behind<Answer, Problem> {
  return {
    perform: asked => handle(context, asked),
    answerOf,
    rosterOf: (asked, panels, patients) => context.rosterOf(context, asked, panels, patients),
    answerFrom: trail => ({ ...trail, headers: {} }),
    told: ({ status, headers, body, before }) => ({
      status,
      answer: typeof body === 'string' ? body : undefined,
      location: headers.location,
      before,
    }),
    send,
  }
}

const JSON_TYPE = 'application/fhir+json; charset=utf-8'

function send(reply: FastifyReply, answer: Answer): FastifyReply | Promise<FastifyReply> {
  const { status, headers, body, content } = answer
  const { interaction } = reply.request
  reply.code(status).headers(headers)
  if (body === undefined) return reply.send()
  if (content && interaction && 'id' in interaction) return sendContent(reply, interaction.id ?? '', content)
  if (headers['content-type'] === undefined) reply.header('content-type', JSON_TYPE)
  return sendBody(reply, body)
}
