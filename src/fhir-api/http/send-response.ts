import type { FastifyReply } from 'fastify'
import { type FhirResponse, getHeaders } from '../response.ts'
import { sendBody } from './send-body.ts'
import { sendContent } from './send-content.ts'

export function sendResponse(
  reply: FastifyReply,
  response: FhirResponse,
): FastifyReply | Promise<FastifyReply> {
  const { interaction } = reply.request
  reply.code(response.status).headers(getHeaders(response))
  if (response.content && interaction && 'id' in interaction)
    return sendContent(reply, interaction.id ?? '', response.content)
  return response.body === undefined ? reply.send() : sendBody(reply, response.body)
}
