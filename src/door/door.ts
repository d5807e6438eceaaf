import type { FastifyInstance, FastifyReply, FastifyRequest, HTTPMethods } from 'fastify'
import type { FhirAudit } from '../audit/index.ts'
import type { Guard } from '../consent/index.ts'
import { type AnyProblem, isProblem } from '../fhir/index.ts'
import type { Origins } from '../web/index.ts'
import { admit } from './admit.ts'
import { answerTo } from './answer-to.ts'
import type { Behind } from './behind.ts'
import { decodeBody } from './decode-body.ts'
import type { Base } from './interaction-of.ts'

/** What everything at the door works with. */
export interface Door<A extends object, P extends AnyProblem> extends Base {
  readonly guard: Guard
  readonly audit: FhirAudit | undefined
  readonly behind: Behind<A, P>
  readonly clock: () => number
  readonly bodyLimit: number
  readonly origins: Origins
}

/** Those of FHIR's REST API, and of preflights. Any other is answered before the token is looked at. */
const METHODS: HTTPMethods[] = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']

/** Serves every address below the FHIR base by one route: what an address means is told by `parseInteraction` alone. */
export function hang<A extends object, P extends AnyProblem>(app: FastifyInstance, door: Door<A, P>): void {
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
  app.addHook('onRequest', (request, reply, done) => admit(door, request, reply, done))
  const answer = async (request: FastifyRequest, reply: FastifyReply) =>
    behind.send(reply, await answerTo(door, request))
  app.route({ method: METHODS, url: '/', handler: answer, exposeHeadRoute: false })
  app.route({ method: METHODS, url: '/*', handler: answer, exposeHeadRoute: false })
}
