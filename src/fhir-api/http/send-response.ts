import { pipeline, type Readable } from 'node:stream'
import { promisify } from 'node:util'
import { brotliCompress, constants, createBrotliCompress, createGzip, gzip } from 'node:zlib'
import type { FastifyReply } from 'fastify'
import type { NativeContent } from '../../fhir/index.ts'
import { type FhirResponse, getHeaders } from '../response.ts'

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
    .header('content-length', bytes.length)
  return reply.request.method === 'HEAD' ? reply.send() : reply.send(bytes)
}

type Encoding = 'br' | 'gzip'

// Fast rather than small: a response is sent once.
const BROTLI = { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } }

const GZIP = { level: 5 }

const compressBrotli = promisify(brotliCompress)

const compressGzip = promisify(gzip)

/** The supported encoding that the client accepts (RFC 9110, 12.5.3). */
function chooseEncoding(accepted: string | undefined): Encoding | undefined {
  if (accepted === undefined) return undefined
  const listed = accepted.split(',').map(it => it.trim().toLowerCase())
  const accepts = (name: string) =>
    listed.some(it => it === name || (it.startsWith(`${name};`) && !/;\s*q=0(?:\.0*)?$/.test(it)))
  return accepts('br') ? 'br' : accepts('gzip') ? 'gzip' : undefined
}

function compress(body: string, encoding: Encoding): Promise<Buffer> {
  return encoding === 'br' ? compressBrotli(body, BROTLI) : compressGzip(body, GZIP)
}

/** Compresses while the body arrives. When one stream fails or closes, so does the other. */
function compressStream(body: Readable, encoding: Encoding): Readable {
  const compressing = encoding === 'br' ? createBrotliCompress(BROTLI) : createGzip(GZIP)
  return pipeline(body, compressing, () => undefined)
}

const WORTH_COMPRESSING = 1024

/**
 * Sends a body whose status and headers are set, compressed if the client accepts it and it is long enough. A HEAD
 * gets the response of its GET, without the body (RFC 9110, 9.3.2). ETags are weak, so one version has one ETag in any encoding.
 */
function sendBody(reply: FastifyReply, body: string | Readable): FastifyReply | Promise<FastifyReply> {
  const encoding = negotiateEncoding(reply, body)
  if (reply.request.method === 'HEAD') return sendHead(reply, body, encoding)
  if (encoding === undefined) return reply.send(body)
  if (typeof body !== 'string') return reply.send(compressStream(body, encoding))
  return compress(body, encoding).then(bytes => reply.send(bytes))
}

/** Chooses the encoding and sets the headers `Vary` and `Content-Encoding`. */
function negotiateEncoding(reply: FastifyReply, body: string | Readable): Encoding | undefined {
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
  // The length of the compressed body is not known (RFC 9110, 8.6).
  else if (!encoding) reply.header('content-length', Buffer.byteLength(body))
  return reply.send()
}
