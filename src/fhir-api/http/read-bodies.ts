import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { fail, hasCode, isFailure, readWhole } from '../../core/index.ts'
import { failFor } from '../../fhir/index.ts'
import { runInThreadPool, ThreadPoolFull } from '../../turns/index.ts'
import type { Failure } from '../response.ts'
import type { FhirApi } from './fhir-api.ts'
import { receiveContent } from './receive-content.ts'

/** Reads every body as a whole, whatever its type: the parsed interaction decides which types it accepts. */
export function readBodies(app: FastifyInstance, { bodyLimits: { bytes: bodyLimit } }: FhirApi): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser<Buffer>('*', { parseAs: 'buffer', bodyLimit }, (request, body, done) =>
    setBody(request, body, bodyLimit, done),
  )
}

/** Receives large contents of Binaries as streams, and all other bodies as a whole. */
export function readContents(app: FastifyInstance, api: FhirApi): void {
  const { bytes: bodyLimit } = api.bodyLimits
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (request, payload, done) => {
    const content = receiveContent(api, request, payload)
    if (!content) {
      const whole = readWhole(payload.iterator({ destroyOnReturn: false }), bodyLimit)
      whole.then(
        body => setBody(request, body ?? failFor('body-too-large', { limit: bodyLimit }), bodyLimit, done),
        done,
      )
    } else {
      if (isFailure(content)) request.bodyProblem = content
      else request.content = content
      done(null, undefined)
    }
  })
}

type Done = (error: Error | null, body?: Buffer) => void

/** Sets the decoded body, or the reason why there is none. */
function setBody(request: FastifyRequest, body: Buffer | Failure, limit: number, done: Done): void {
  const encoding = request.headers['content-encoding']
  const finish = (decoded: Buffer | Failure) => {
    if (isFailure(decoded)) request.bodyProblem = decoded
    done(null, isFailure(decoded) ? undefined : decoded)
  }
  if (isFailure(body) || encoding === undefined) finish(body)
  else decodeBody(body, encoding, limit).then(finish, done)
}

const decompress = promisify(gunzip)

/** The decompressed body, if it is not longer than the limit. */
async function decodeBody(body: Buffer, encoding: string, limit: number): Promise<Buffer | Failure> {
  switch (encoding.trim().toLowerCase()) {
    case '':
    case 'identity':
      return body
    case 'gzip':
    case 'x-gzip':
      try {
        return await runInThreadPool(() => decompress(body, { maxOutputLength: limit }))
      } catch (error) {
        if (error instanceof ThreadPoolFull) throw error
        return isTooLong(error) ? failFor('body-too-large', { limit }) : failFor('body-not-gzip')
      }
    default:
      return fail({
        ...failFor('wrong-content-encoding', { expected: 'gzip' }),
        headers: { 'accept-encoding': 'gzip' },
      })
  }
}

function isTooLong(error: unknown): boolean {
  return hasCode(error, 'ERR_BUFFER_TOO_LARGE')
}
