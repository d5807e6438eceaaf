import type { FastifyReply } from 'fastify'
import type { NativeContent } from '../../fhir/index.ts'

/**
 * Sends the content of a Binary. Whoever stored it chose what it is: it is never shown by this origin, nor run in it
 * (the policy of a sandbox, a download, and no guessing of its type).
 */
export function sendContent(
  reply: FastifyReply,
  id: string,
  { contentType, bytes }: NativeContent,
): FastifyReply {
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
