import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Admitted, TurnedAway } from '../consent/index.ts'
import {
  type AnyProblem,
  authorizationOf,
  type FhirProblem,
  fail,
  type Interaction,
  isPublic,
  type Misunderstood,
} from '../fhir/index.ts'
import { answerPreflight, setCors } from '../web/index.ts'
import type { Door } from './door.ts'
import { interactionOf } from './interaction-of.ts'
import { recorded } from './recorded.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The caller, once the guard has admitted it; undefined for what is public. */
    admitted: Admitted | undefined
    /** What the request means. That of a POST may depend on its form, and is told when the body has been read. */
    interaction: Interaction | Misunderstood | undefined
    /** Why its body could not be decoded. */
    bodyProblem: FhirProblem | undefined
  }
}

type Done = (error?: Error) => void

/** Judges the token before a byte of the body is read. */
export function admit<A extends object, P extends AnyProblem>(
  door: Door<A, P>,
  request: FastifyRequest,
  reply: FastifyReply,
  done: Done,
): void {
  if (request.method !== 'POST') request.interaction = interactionOf(request, door)
  const open = request.interaction !== undefined && isPublic(request.interaction)
  setCors(request, reply, door.origins, open)
  if (request.method === 'OPTIONS') answerPreflight(reply)
  else if (open) done()
  else {
    const judged = door.guard.admit(authorizationOf(request.raw.rawHeaders))
    if (judged instanceof Promise) judged.then(it => enter(door, request, reply, it, done), done)
    else enter(door, request, reply, judged, done)
  }
}

function enter<A extends object, P extends AnyProblem>(
  door: Door<A, P>,
  request: FastifyRequest,
  reply: FastifyReply,
  judged: TurnedAway | Admitted,
  done: Done,
): void {
  request.admitted = judged.allowed ? judged : undefined
  if (judged.allowed) done()
  else turnAway(door, request, reply, judged).catch(done)
}

async function turnAway<A extends object, P extends AnyProblem>(
  door: Door<A, P>,
  request: FastifyRequest,
  reply: FastifyReply,
  refused: TurnedAway,
): Promise<FastifyReply> {
  const { interaction = interactionOf(request, door) } = request
  return door.behind.send(
    reply,
    await recorded(door, request, { interaction, held: refused.held }, fail({ problem: 'refused', refused })),
  )
}
