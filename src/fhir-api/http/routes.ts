import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import type { FastifyInstance, FastifyReply, FastifyRequest, HTTPMethods } from 'fastify'
import { type FhirProblem, fail, isProblem } from '../../fhir/index.ts'
import { authenticate } from './authenticate.ts'
import type { FhirApi } from './fhir-api.ts'
import { respondTo } from './respond.ts'
import { sendResponse } from './send-response.ts'

const decompress = promisify(gunzip)

/** The body of a request before it was compressed, up to a number of bytes. What grows beyond them is given up there. */
async function decodeBody(body: Buffer, encoding: string, limit: number): Promise<Buffer | FhirProblem> {
  switch (encoding.trim().toLowerCase()) {
    case '':
    case 'identity':
      return body
    case 'gzip':
    case 'x-gzip':
      try {
        return await decompress(body, { maxOutputLength: limit })
      } catch (error) {
        return isTooLong(error)
          ? fail({ problem: 'body-too-large', limit })
          : fail({ problem: 'malformed-body', text: 'Cannot read body: it is not valid gzip' })
      }
    default:
      return fail({ problem: 'wrong-content-encoding', expected: 'gzip' })
  }
}

function isTooLong(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ERR_BUFFER_TOO_LARGE'
}

/** Those of FHIR's REST API, and of preflights. Any other is refused before the token is looked at. */
const METHODS: HTTPMethods[] = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']

/** Serves every URL below the FHIR base by one route: only `parseInteraction` decides what a URL means. */
export function addRoutes(app: FastifyInstance, api: FhirApi): void {
  const { bodyLimit } = api
  app.removeAllContentTypeParsers()
  app.addContentTypeParser<Buffer>('*', { parseAs: 'buffer', bodyLimit }, (request, body, done) => {
    const encoding = request.headers['content-encoding']
    if (encoding === undefined) done(null, body)
    else
      decodeBody(body, encoding, bodyLimit).then(decoded => {
        if (isProblem(decoded)) request.bodyProblem = decoded
        done(null, isProblem(decoded) ? undefined : decoded)
      }, done)
  })
  app.decorateRequest('authenticated', undefined)
  app.decorateRequest('interaction', undefined)
  app.decorateRequest('bodyProblem', undefined)
  // With a callback: a token that is cached is verified at once, and a promise would only cost time.
  app.addHook('onRequest', (request, reply, done) => authenticate(api, request, reply, done))
  const respond = async (request: FastifyRequest, reply: FastifyReply) =>
    sendResponse(reply, await respondTo(api, request))
  app.route({ method: METHODS, url: '/', handler: respond, exposeHeadRoute: false })
  app.route({ method: METHODS, url: '/*', handler: respond, exposeHeadRoute: false })
}
