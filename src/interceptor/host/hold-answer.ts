import type { OutgoingHttpHeaders, ServerResponse } from 'node:http'
import { refuse } from '../refuse.ts'
import type { Answer, AnswerVerdict } from './judge-answer.ts'
import { sendRefused } from './send-refused.ts'

/**
 * Holds back what a host writes to a response until it is whole, has it judged, and only then lets it out. It stands
 * below every framework: whatever the host does, it ends in `writeHead`, `write` and `end`.
 */
export function holdAnswer(response: ServerResponse, judge: (answer: Answer) => AnswerVerdict): void {
  const { writeHead, write, end, flushHeaders } = response
  const chunks: Buffer[] = []
  const keep = (chunk: unknown, encoding: unknown) => {
    if (typeof chunk === 'string')
      chunks.push(Buffer.from(chunk, typeof encoding === 'string' ? (encoding as BufferEncoding) : 'utf8'))
    else if (chunk instanceof Uint8Array) chunks.push(Buffer.from(chunk))
  }
  const release = (): ServerResponse => {
    Object.assign(response, { writeHead, write, end, flushHeaders })
    const body = Buffer.concat(chunks)
    const verdict = judged(judge, { status: response.statusCode, body })
    if (verdict === 'release') return response.end(body)
    if (verdict !== 'empty') return sendRefused(response, verdict)
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
      keep(chunk, encoding)
      callBack(encoding, done)
      return true
    },
    end(chunk?: unknown, encoding?: unknown, done?: unknown) {
      if (typeof chunk !== 'function') keep(chunk, encoding)
      const ended = release()
      callBack(chunk, encoding, done)
      return ended
    },
  })
}

// Whatever throws becomes a refusal.
function judged(judge: (answer: Answer) => AnswerVerdict, answer: Answer): AnswerVerdict {
  try {
    return judge(answer)
  } catch {
    return refuse({ kind: 'broken' })
  }
}

// `writeHead` takes an object, a list of pairs, or a flat list.
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

function callBack(...candidates: readonly unknown[]): void {
  const done = candidates.find(it => typeof it === 'function')
  if (done) process.nextTick(done)
}
