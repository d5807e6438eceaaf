import type { FastifyRequest } from 'fastify'
import type { Finished } from '../../audit/index.ts'
import {
  type AnyProblem,
  type FhirProblem,
  type Interaction,
  isProblem,
  type Misunderstood,
} from '../../fhir/index.ts'
import type { Grant } from '../../smart/index.ts'
import type { AuditOutcome, Behind } from '../behind.ts'
import type { FhirApi } from './routes.ts'

/** What was asked, as far as it is known. */
interface AuditInput {
  readonly interaction: Interaction | Misunderstood
  readonly by?: string | undefined
  readonly body?: unknown
  /** What a token said that is no good any more. */
  readonly held?: Grant | undefined
}

/** The response, which may go out: what was asked, decided and answered is in the audit trail. */
export async function recordOutcome<A extends object, P extends AnyProblem>(
  door: FhirApi<A, P>,
  request: FastifyRequest,
  came: AuditInput,
  outcome: A | P | FhirProblem,
): Promise<A> {
  const { behind } = door
  const answer = toResponse(behind, outcome)
  await record(door, request, came, behind.told(answer), isProblem(outcome) ? outcome : undefined)
  return answer
}

export function toResponse<A extends object, P extends AnyProblem>(
  behind: Behind<A, P>,
  outcome: A | P | FhirProblem,
): A {
  return isProblem<P | FhirProblem>(outcome) ? behind.answerOf(outcome) : outcome
}

/** Resolves when it is kept. */
export async function record<A extends object, P extends AnyProblem>(
  door: FhirApi<A, P>,
  request: FastifyRequest,
  came: AuditInput,
  told: AuditOutcome,
  problem?: AnyProblem,
): Promise<void> {
  await door.audit?.record(describeRequest(door, request, came, told, problem))
}

/** What the audit trail records of an outcome. */
export function describeOutcome<A extends object, P extends AnyProblem>(
  door: FhirApi<A, P>,
  request: FastifyRequest,
  came: AuditInput,
  outcome: A | P | FhirProblem,
): Finished {
  const told = door.behind.told(toResponse(door.behind, outcome))
  return describeRequest(door, request, came, told, isProblem(outcome) ? outcome : undefined)
}

export function describeRequest<A extends object, P extends AnyProblem>(
  door: FhirApi<A, P>,
  request: FastifyRequest,
  { interaction, by, body, held }: AuditInput,
  told: AuditOutcome,
  problem?: AnyProblem,
): Finished {
  return {
    ...told,
    ...{ interaction, by, problem, sent: body, held },
    at: door.clock(),
    method: request.method,
    address: (request.raw.url ?? '').slice(door.basePath.length),
    admitted: request.admitted,
    kept: door.behind.kept,
    requestId: String(request.id),
    clientAddress: request.ip,
  }
}
