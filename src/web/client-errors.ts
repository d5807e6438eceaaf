import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { newRequestId } from './request-id.ts'

const STATUS: Readonly<Record<string, number>> = {
  ERR_HTTP_REQUEST_TIMEOUT: 408,
  HPE_HEADER_OVERFLOW: 431,
}

/** Answers what is not HTTP at all, or comes too slowly: there is no request yet, only a socket. */
export function answerClientError(
  this: FastifyInstance,
  error: Error & { readonly code: string },
  socket: Socket,
): void {
  if (error.code === 'ECONNRESET' || socket.destroyed) return
  const requestId = newRequestId()
  const status = STATUS[error.code] ?? 400
  this.log.debug({ requestId, status, code: error.code }, 'Unreadable request')
  if (socket.writable) {
    const body = `${STATUS_CODES[status]}\n`
    socket.write(
      `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nContent-Length: ${body.length}\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\nX-Request-Id: ${requestId}\r\n\r\n${body}`,
    )
  }
  socket.destroySoon()
}
