import type { FastifyRequest } from 'fastify'
import { AuditUnavailable, type FhirAudit, isAboutAudit } from '../audit/index.ts'
import { type AnyProblem, type FhirProblem, fail, isProblem, mayWrite } from '../fhir/index.ts'
import type { Behind, Told } from './behind.ts'
import type { Asked } from './call.ts'
import { callOf } from './call-of.ts'
import type { Door } from './door.ts'
import { interactionOf } from './interaction-of.ts'
import { answered, record, recorded } from './recorded.ts'

/** The response to a request that came through, which may go out. */
export async function answerTo<A extends object, P extends AnyProblem>(
  door: Door<A, P>,
  request: FastifyRequest,
): Promise<A> {
  const { interaction = interactionOf(request, door) } = request
  if (request.bodyProblem) return recorded(door, request, { interaction }, request.bodyProblem)
  if (interaction.kind === 'misunderstood')
    return recorded(door, request, { interaction }, fail({ ...interaction, problem: 'misunderstood' }))
  const asked = callOf(interaction, request)
  if (isProblem(asked)) return recorded(door, request, { interaction }, asked)
  const { audit, behind } = door
  if (!audit) return answered(behind, await behind.perform(asked))
  try {
    return await recorded(door, request, asked, await perform(behind, audit, asked))
  } catch (error) {
    if (!(error instanceof AuditUnavailable)) await record(door, request, asked, FAILED)
    throw error
  }
}

/** What is answered when the work itself throws; the error handler says it. */
const FAILED: Told = { status: 500 }

/** What the audit trail keeps it answers itself; what it could not keep is not begun. */
async function perform<A extends object, P extends AnyProblem>(
  behind: Behind<A, P>,
  audit: FhirAudit,
  asked: Asked,
): Promise<A | P | FhirProblem> {
  const { interaction, access, preferences } = asked
  if (isAboutAudit(interaction)) {
    const found = await audit.answer({
      ...{ interaction, access, lenient: preferences.lenient },
      rosterOf: (panels, patients) => behind.rosterOf(asked, panels, patients),
    })
    return isProblem(found) ? found : behind.answerFrom(found)
  }
  if (mayWrite(interaction)) await audit.prepare()
  return behind.perform(asked)
}
