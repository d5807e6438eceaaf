import { type IncomingMessage, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { FastifyInstance } from 'fastify'
import { HEADER_BYTES } from './limits.ts'
import { createRequestId } from './request-id.ts'

const STATUS: Readonly<Record<string, number>> = {
  ERR_HTTP_REQUEST_TIMEOUT: 408,
  HPE_HEADER_OVERFLOW: 431,
}

// RFC 9110, 9.1: a method is a token. Anything else is not HTTP, such as TLS on a plain HTTP port.
const METHOD = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64} /

/** RFC 9110, 15.6.2: an unknown method is 501. */
function chooseStatus({ code, rawPacket }: ClientError): number {
  const start = rawPacket instanceof Buffer ? rawPacket.toString('latin1', 0, 66) : ''
  if (code === 'HPE_INVALID_METHOD' && METHOD.test(start)) return 501
  return STATUS[code] ?? 400
}

interface ClientError extends Error {
  readonly code: string
  readonly rawPacket?: unknown
}

/** Responds to data that is not HTTP, or that arrives too slowly: there is no request yet, only a socket. */
export function answerClientError(this: FastifyInstance, error: ClientError, socket: Socket): void {
  if (error.code === 'ECONNRESET' || socket.destroyed) return
  const requestId = createRequestId()
  const status = chooseStatus(error)
  this.log.debug({ requestId, status, code: error.code }, 'Unreadable request')
  if (socket.writable) socket.write(formatResponse(status, [`X-Request-Id: ${requestId}`]))
  socket.destroySoon()
}

/** Refuses CONNECT, which requests a tunnel. Node itself closes the connection without a response. */
export function answerConnect(_request: IncomingMessage, socket: Duplex): void {
  socket.end(formatResponse(405, ['Allow: ', `X-Request-Id: ${createRequestId()}`]))
}

const TOO_LARGE = `The request line and headers are larger than ${HEADER_BYTES} bytes.\n`

function formatResponse(status: number, headers: readonly string[]): string {
  const body = status === 431 ? TOO_LARGE : `${STATUS_CODES[status]}\n`
  const lines = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    `Content-Length: ${body.length}`,
    'Content-Type: text/plain; charset=utf-8',
    'Connection: close',
    ...headers,
  ]
  return `${lines.join('\r\n')}\r\n\r\n${body}`
}
