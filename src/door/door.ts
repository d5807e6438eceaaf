import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { FhirAudit } from '../audit/index.ts'
import type { Guard } from '../consent/index.ts'
import type { Origins } from '../web/index.ts'
import { admit } from './admit.ts'
import { answerTo } from './answer-to.ts'
import type { AnyProblem, Behind } from './behind.ts'

export interface Door<A extends object, P extends AnyProblem> {
  readonly guard: Guard
  /** Keeps what was decided before it is answered, and answers AuditEvents. */
  readonly audit: FhirAudit | undefined
  readonly behind: Behind<A, P>
  readonly clock: () => number
  readonly basePath: string
  /** The largest body that is read, in bytes. */
  readonly bodyLimit: number
  readonly origins: Origins
}

/** Serves every address below the FHIR base by one route: what an address means is told by `parseInteraction` alone. */
export function openDoor<A extends object, P extends AnyProblem>(
  app: FastifyInstance,
  door: Door<A, P>,
): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', { parseAs: 'buffer', bodyLimit: door.bodyLimit }, (_request, body, done) =>
    done(null, body),
  )
  app.decorateRequest('admitted', undefined)
  app.decorateRequest('interaction', undefined)
  // With a callback: a token that was seen before is judged at once, and a promise would only cost.
  app.addHook('onRequest', (request, reply, done) => admit(door, request, reply, done))
  const answer = async (request: FastifyRequest, reply: FastifyReply) =>
    door.behind.send(reply, await answerTo(door, request))
  app.all('/', answer)
  app.all('/*', answer)
}
