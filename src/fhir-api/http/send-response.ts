import type { FastifyReply } from 'fastify'
import type { NativeContent } from '../../fhir/index.ts'
import { type FhirResponse, getHeaders } from '../response.ts'
import { sendBody } from './send-body.ts'

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

/**
 * Sends the content of a Binary. Whoever stored it chose what it is: it is never shown by this origin, nor run in it
 * (the policy of a sandbox, a download, and no guessing of its type).
 */
function sendContent(reply: FastifyReply, id: string, { contentType, bytes }: NativeContent): FastifyReply {
  const vary = reply.getHeader('vary')
  reply
    .header('content-type', contentType)
    .header('content-disposition', `attachment; filename="${id}"`)
    .header('content-security-policy', "sandbox; default-src 'none'; frame-ancestors 'none'")
    .header('x-content-type-options', 'nosniff')
    .header('vary', vary === undefined ? 'Accept' : `${String(vary)}, Accept`)
    .header('content-length', bytes.length)
  return reply.request.method === 'HEAD' ? reply.send() : reply.send(bytes)
}
