import type { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'
import { chooseEncoding, compress, compressStream, type Encoding } from './compress.ts'

/** Shorter bodies are not worth the time. */
const WORTH_COMPRESSING = 1024

/**
 * Sends a body whose status and headers are set, compressed where the client accepts it and it is worth it. A HEAD is
 * answered as its GET, without the body (RFC 9110, 9.3.2). ETags are weak, so one version has one ETag in any encoding.
 */
export function sendBody(reply: FastifyReply, body: string | Readable): FastifyReply | Promise<FastifyReply> {
  const encoding = encodingFor(reply, body)
  if (reply.request.method === 'HEAD') return sendHead(reply, body, encoding)
  if (encoding === undefined) return reply.send(body)
  if (typeof body !== 'string') return reply.send(compressStream(body, encoding))
  return compress(body, encoding).then(bytes => reply.send(bytes))
}

/** Says that the response depends on Accept-Encoding, and which encoding was chosen. */
function encodingFor(reply: FastifyReply, body: string | Readable): Encoding | undefined {
  if (typeof body === 'string' && body.length < WORTH_COMPRESSING) return undefined
  const vary = reply.getHeader('vary')
  reply.header('vary', vary === undefined ? 'Accept-Encoding' : `${String(vary)}, Accept-Encoding`)
  const encoding = chooseEncoding(reply.request.headers['accept-encoding'])
  if (encoding) reply.header('content-encoding', encoding)
  return encoding
}

function sendHead(
  reply: FastifyReply,
  body: string | Readable,
  encoding: Encoding | undefined,
): FastifyReply {
  if (typeof body !== 'string') body.destroy()
  // How long the compressed body would be is not known (RFC 9110, 8.6).
  else if (!encoding) reply.header('content-length', Buffer.byteLength(body))
  return reply.send()
}
