import type { FastifyReply } from 'fastify'
import type { Answer } from '../answer.ts'
import { chooseEncoding, packed, packedStream } from './pack.ts'

const JSON_TYPE = 'application/fhir+json; charset=utf-8'

/** Sends an answer, packed where the caller takes it so. A HEAD is answered as its GET, without the body. */
export async function send(reply: FastifyReply, { status, headers, body }: Answer): Promise<FastifyReply> {
  reply.code(status).headers(headers)
  if (body === undefined) return reply.send()
  if (headers['content-type'] === undefined) reply.header('content-type', JSON_TYPE)
  const isHead = reply.request.method === 'HEAD'
  if (typeof body !== 'string') {
    if (isHead) body.destroy()
    return isHead ? reply.send('') : reply.send(packedStream(body, encodingFor(reply)))
  }
  if (isHead) return reply.header('content-length', Buffer.byteLength(body)).send('')
  const accepted = reply.request.headers['accept-encoding']
  if (accepted === undefined || body.length < WORTH_PACKING) return reply.send(body)
  return reply.send(await packed(body, encodingFor(reply)))
}

const WORTH_PACKING = 1024

function encodingFor(reply: FastifyReply): 'br' | 'gzip' | undefined {
  const encoding = chooseEncoding(reply.request.headers['accept-encoding'])
  const vary = reply.getHeader('vary')
  reply.header('vary', vary === undefined ? 'Accept-Encoding' : `${String(vary)}, Accept-Encoding`)
  if (encoding) reply.header('content-encoding', encoding)
  return encoding
}
