import type { OutgoingHttpHeaders, ServerResponse } from 'node:http'
import type { Refused } from '../../fhir/index.ts'
import { refuse } from '../refuse.ts'
import type { HostResponse, ResponseVerdict } from './check-response.ts'

/**
 * Holds back everything that a host writes to a response until it is complete, checks it, and then releases it. It works
 * with every framework, because all of them call `writeHead`, `write` and `end`.
 */
export function holdResponse(response: ServerResponse, check: (held: HostResponse) => ResponseVerdict): void {
  const { writeHead, write, end, flushHeaders } = response
  const chunks: Buffer[] = []
  const collect = (chunk: unknown, encoding: unknown) => {
    if (typeof chunk === 'string')
      chunks.push(Buffer.from(chunk, typeof encoding === 'string' ? (encoding as BufferEncoding) : 'utf8'))
    else if (chunk instanceof Uint8Array) chunks.push(Buffer.from(chunk))
  }
  const release = (): ServerResponse => {
    Object.assign(response, { writeHead, write, end, flushHeaders })
    const body = Buffer.concat(chunks)
    const verdict = checkSafely(check, { status: response.statusCode, body })
    if (verdict === 'release') return response.end(body)
    if (verdict !== 'empty') return sendRefusal(response, verdict)
    for (const name of ['content-length', 'content-type', 'etag']) response.removeHeader(name)
    return response.end()
  }
  Object.assign(response, {
    flushHeaders: () => undefined,
    writeHead(status: number, ...rest: unknown[]) {
      response.statusCode = status
      setHeaders(response, rest.at(-1))
      return response
    },
    write(chunk: unknown, encoding?: unknown, done?: unknown) {
      collect(chunk, encoding)
      runCallback(encoding, done)
      return true
    },
    end(chunk?: unknown, encoding?: unknown, done?: unknown) {
      collect(chunk, encoding)
      const ended = release()
      runCallback(chunk, encoding, done)
      return ended
    },
  })
}

function checkSafely(check: (held: HostResponse) => ResponseVerdict, held: HostResponse): ResponseVerdict {
  try {
    return check(held)
  } catch {
    return refuse({ kind: 'broken' })
  }
}

// `writeHead` accepts an object, a list of pairs, or a flat list.
function setHeaders(response: ServerResponse, headers: unknown): void {
  if (Array.isArray(headers)) {
    const flat: unknown[] = headers.flat()
    for (let at = 0; at + 1 < flat.length; at += 2)
      response.appendHeader(String(flat[at]), String(flat[at + 1]))
  } else if (typeof headers === 'object' && headers !== null) {
    for (const [name, value] of Object.entries(headers as OutgoingHttpHeaders))
      if (value !== undefined) response.setHeader(name, value)
  }
}

function runCallback(...candidates: readonly unknown[]): void {
  const done = candidates.find(it => typeof it === 'function')
  if (done) process.nextTick(done)
}

// Headers that the host sets for every response. All others describe the response that is not sent.
const KEPT_HEADERS =
  /^(?:access-control-.*|vary|x-request-id|strict-transport-security|x-content-type-options)$/

/** Sends a refusal instead of the response that the host has prepared. */
export function sendRefusal(response: ServerResponse, refused: Refused): ServerResponse {
  for (const name of response.getHeaderNames()) if (!KEPT_HEADERS.test(name)) response.removeHeader(name)
  const body = Buffer.from(JSON.stringify(refused.outcome))
  response.statusCode = refused.status
  response.statusMessage = ''
  for (const [name, value] of Object.entries(refused.headers)) response.setHeader(name, value)
  response.setHeader('content-type', 'application/fhir+json; charset=utf-8')
  response.setHeader('content-length', body.length)
  response.setHeader('cache-control', 'no-store')
  return response.end(body)
}
