import type { FastifyReply, FastifyRequest } from 'fastify'
import {
  type AnyProblem,
  authorizationOf,
  type FhirProblem,
  fail,
  type Interaction,
  isPublic,
  type Misunderstood,
} from '../../fhir/index.ts'
import type { Authenticated, AuthFailure } from '../../smart/index.ts'
import { answerPreflight, setCors } from '../../web/index.ts'
import { findInteraction } from './find-interaction.ts'
import { recordOutcome } from './record.ts'
import type { FhirApi } from './routes.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The caller, once the guard has admitted it; undefined for what is public. */
    admitted: Authenticated | undefined
    /** What the request means. That of a POST may depend on its form, and is told when the body has been read. */
    interaction: Interaction | Misunderstood | undefined
    /** Why its body could not be decoded. */
    bodyProblem: FhirProblem | undefined
  }
}

type Done = (error?: Error) => void

/** Judges the token before a byte of the body is read. */
export function authenticate<A extends object, P extends AnyProblem>(
  door: FhirApi<A, P>,
  request: FastifyRequest,
  reply: FastifyReply,
  done: Done,
): void {
  if (request.method !== 'POST') request.interaction = findInteraction(request, door)
  const open = request.interaction !== undefined && isPublic(request.interaction)
  setCors(request, reply, door.origins, open)
  if (request.method === 'OPTIONS') answerPreflight(reply)
  else if (open) done()
  else {
    const judged = door.guard.authenticate(authorizationOf(request.raw.rawHeaders))
    if (judged instanceof Promise) judged.then(it => continueWith(door, request, reply, it, done), done)
    else continueWith(door, request, reply, judged, done)
  }
}

function continueWith<A extends object, P extends AnyProblem>(
  door: FhirApi<A, P>,
  request: FastifyRequest,
  reply: FastifyReply,
  judged: AuthFailure | Authenticated,
  done: Done,
): void {
  request.admitted = judged.allowed ? judged : undefined
  if (judged.allowed) done()
  else sendUnauthorized(door, request, reply, judged).catch(done)
}

async function sendUnauthorized<A extends object, P extends AnyProblem>(
  door: FhirApi<A, P>,
  request: FastifyRequest,
  reply: FastifyReply,
  refused: AuthFailure,
): Promise<FastifyReply> {
  const { interaction = findInteraction(request, door) } = request
  return door.behind.send(
    reply,
    await recordOutcome(
      door,
      request,
      { interaction, held: refused.rejectedGrant },
      fail({ problem: 'refused', refused }),
    ),
  )
}
