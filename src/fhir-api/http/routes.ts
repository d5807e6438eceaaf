import type { FastifyInstance, FastifyReply, FastifyRequest, HTTPMethods } from 'fastify'
import type { FhirAudit } from '../../audit/index.ts'
import { type AnyProblem, isProblem } from '../../fhir/index.ts'
import type { Authenticator } from '../../smart/index.ts'
import type { Origins } from '../../web/index.ts'
import type { Behind } from '../behind.ts'
import { authenticate } from './authenticate.ts'
import { decodeBody } from './decode-body.ts'
import type { BaseLocation } from './find-interaction.ts'
import { respondTo } from './respond.ts'

/** What everything at the door works with. */
export interface FhirApi<A extends object, P extends AnyProblem> extends BaseLocation {
  readonly guard: Authenticator
  readonly audit: FhirAudit | undefined
  readonly behind: Behind<A, P>
  readonly clock: () => number
  readonly bodyLimit: number
  readonly origins: Origins
}

/** Those of FHIR's REST API, and of preflights. Any other is answered before the token is looked at. */
const METHODS: HTTPMethods[] = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']

/** Serves every address below the FHIR base by one route: what an address means is told by `parseInteraction` alone. */
export function addRoutes<A extends object, P extends AnyProblem>(
  app: FastifyInstance,
  door: FhirApi<A, P>,
): void {
  const { behind, bodyLimit } = door
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
  app.decorateRequest('admitted', undefined)
  app.decorateRequest('interaction', undefined)
  app.decorateRequest('bodyProblem', undefined)
  // With a callback: a token that was seen before is judged at once, and a promise would only cost.
  app.addHook('onRequest', (request, reply, done) => authenticate(door, request, reply, done))
  const answer = async (request: FastifyRequest, reply: FastifyReply) =>
    behind.send(reply, await respondTo(door, request))
  app.route({ method: METHODS, url: '/', handler: answer, exposeHeadRoute: false })
  app.route({ method: METHODS, url: '/*', handler: answer, exposeHeadRoute: false })
}
