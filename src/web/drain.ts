import type { IncomingMessage } from 'node:http'
import type { FastifyInstance } from 'fastify'
import { DRAIN_BYTES, DRAIN_MS } from './limits.ts'

/**
 * Reads and drops what a client still sends of a request that is being answered: by a 413, or by a 401 before its body
 * was read. Closing at once resets the connection, and a client that sends its whole body before it reads never sees the
 * response (RFC 9112, 9.6).
 */
export function drainUnread(app: FastifyInstance): void {
  app.addHook('onSend', ({ raw }, _reply, payload, done) => {
    if (!raw.complete && hasBody(raw)) drain(raw)
    done(null, payload)
  })
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined
}

function drain(request: IncomingMessage): void {
  let left = DRAIN_BYTES
  const close = () => request.destroy()
  const timer = setTimeout(close, DRAIN_MS).unref()
  request
    .on('data', (chunk: Buffer) => {
      left -= chunk.length
      if (left < 0) close()
    })
    .once('end', () => clearTimeout(timer))
    .once('close', () => clearTimeout(timer))
    .resume()
}
