import type { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'
import type { NativeContent } from '../../fhir/index.ts'
import { ThreadPoolFull } from '../../turns/index.ts'
import { type FhirResponse, getHeaders } from '../response.ts'
import {
  chooseEncoding,
  compress,
  compressStream,
  type Encoding,
  encodeDocument,
  mayCompressStream,
} from './compress.ts'

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
 * Sends the content of a Binary, which may be anything that a client has stored. A browser must neither display nor run it
 * in this origin: it is sandboxed, a download, and its type is not guessed.
 */
function sendContent(reply: FastifyReply, id: string, { contentType, bytes }: NativeContent): FastifyReply {
  const vary = reply.getHeader('vary')
  reply
    .header('content-type', contentType)
    .header('content-disposition', `attachment; filename="${id}"`)
    .header('content-security-policy', "sandbox; default-src 'none'; frame-ancestors 'none'")
    .header('x-content-type-options', 'nosniff')
    .header('vary', vary === undefined ? 'Accept' : `${String(vary)}, Accept`)
  if (Buffer.isBuffer(bytes)) reply.header('content-length', bytes.length)
  if (reply.request.method !== 'HEAD') return reply.send(bytes)
  if (!Buffer.isBuffer(bytes)) bytes.destroy()
  return reply.send()
}

const PUBLIC_DOCUMENTS: ReadonlySet<string> = new Set(['capabilities', 'smart-configuration'])

const WORTH_COMPRESSING = 1024

/**
 * Sends a body whose status and headers are set, compressed if the client accepts it and it is long enough. A HEAD
 * gets the response of its GET, without the body (RFC 9110, 9.3.2). ETags are weak, so one version has one ETag in any encoding.
 */
function sendBody(reply: FastifyReply, body: string | Readable): FastifyReply | Promise<FastifyReply> {
  const encoding = negotiateEncoding(reply, body)
  if (reply.request.method === 'HEAD') return sendHead(reply, body, encoding)
  const kind = reply.request.interaction?.kind
  if (typeof body === 'string' && kind !== undefined && PUBLIC_DOCUMENTS.has(kind))
    return sendEncoded(reply, body, encodeDocument(kind, body, encoding))
  if (encoding === undefined) return reply.send(body)
  if (typeof body !== 'string') return reply.send(compressStream(body, encoding))
  return sendEncoded(reply, body, compress(body, encoding))
}

/** The response is not compressed if the thread pool has too much to do. */
async function sendEncoded(
  reply: FastifyReply,
  body: string,
  encoded: Promise<Buffer>,
): Promise<FastifyReply> {
  try {
    return reply.send(await encoded)
  } catch (error) {
    if (!(error instanceof ThreadPoolFull)) throw error
    return reply.removeHeader('content-encoding').send(body)
  }
}

/** Chooses the encoding and sets the headers `Vary` and `Content-Encoding`. */
function negotiateEncoding(reply: FastifyReply, body: string | Readable): Encoding | undefined {
  if (typeof body === 'string' && body.length < WORTH_COMPRESSING) return undefined
  const vary = reply.getHeader('vary')
  reply.header('vary', vary === undefined ? 'Accept-Encoding' : `${String(vary)}, Accept-Encoding`)
  const encoding =
    typeof body === 'string' || mayCompressStream()
      ? chooseEncoding(reply.request.headers['accept-encoding'])
      : undefined
  if (encoding) reply.header('content-encoding', encoding)
  return encoding
}

function sendHead(
  reply: FastifyReply,
  body: string | Readable,
  encoding: Encoding | undefined,
): FastifyReply {
  if (typeof body !== 'string') body.destroy()
  // The length of the compressed body is not known (RFC 9110, 8.6).
  else if (!encoding) reply.header('content-length', Buffer.byteLength(body))
  return reply.send()
}
