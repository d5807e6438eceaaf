import type { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'
import type { Answer } from '../answer.ts'
import { chooseEncoding, packed, packedStream } from './pack.ts'

const JSON_TYPE = 'application/fhir+json; charset=utf-8'

/** Sends an answer, packed where the caller takes it so. A HEAD is answered as its GET, without the body. */
export function send(reply: FastifyReply, answer: Answer): FastifyReply | Promise<FastifyReply> {
  const { status, headers, body } = answer
  reply.code(status).headers(headers)
  if (body === undefined) return reply.send()
  if (headers['content-type'] === undefined) reply.header('content-type', JSON_TYPE)
  if (reply.request.method === 'HEAD') return sendHead(reply, body)
  if (typeof body !== 'string') return reply.send(packedStream(body, encodingFor(reply)))
  const accepted = reply.request.headers['accept-encoding']
  if (accepted === undefined || body.length < WORTH_PACKING) return reply.send(body)
  return packed(body, encodingFor(reply)).then(bytes => reply.send(bytes))
}

const WORTH_PACKING = 1024

function sendHead(reply: FastifyReply, body: string | Readable): FastifyReply {
  if (typeof body === 'string') return reply.header('content-length', Buffer.byteLength(body)).send('')
  body.destroy()
  return reply.send('')
}

function encodingFor(reply: FastifyReply): 'br' | 'gzip' | undefined {
  const encoding = chooseEncoding(reply.request.headers['accept-encoding'])
  const vary = reply.getHeader('vary')
  reply.header('vary', vary === undefined ? 'Accept-Encoding' : `${String(vary)}, Accept-Encoding`)
  if (encoding) reply.header('content-encoding', encoding)
  return encoding
}
