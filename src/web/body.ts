import type { IncomingMessage } from 'node:http'
import type { FastifyInstance } from 'fastify'
import { findJsonExcess } from '../fhir/index.ts'
import { DRAIN_BYTES, DRAIN_MS } from './limits.ts'

/** The code of the error for a body that exceeds the JSON limits. */
export const JSON_EXCESS = 'JSON_EXCESS'

/** Refuses JSON that is nested too deeply: serializing it again would overflow the stack. */
export function boundJson(app: FastifyInstance): void {
  const parse = app.getDefaultJsonParser('error', 'error')
  app.removeContentTypeParser('application/json')
  app.addContentTypeParser('application/json', { parseAs: 'string' }, (request, body: string, done) => {
    if (findJsonExcess(body))
      done(Object.assign(new Error('Too much JSON'), { statusCode: 400, code: JSON_EXCESS }))
    else parse(request, body, done)
  })
}

/**
 * Reads and discards the rest of a request body that the server does not need, after a 413 or a 401. Closing the
 * connection at once would reset it, and a client that sends the whole body before it reads would never see the response
 * (RFC 9112, 9.6).
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
