import type { FastifyRequest } from 'fastify'
import { AuditUnavailable, type FhirAudit, isAboutAudit, OUTCOME_UNKNOWN } from '../audit/index.ts'
import { type AnyProblem, type FhirProblem, fail, isProblem, mayWrite } from '../fhir/index.ts'
import { problemOf } from '../web/index.ts'
import type { Behind, Told } from './behind.ts'
import type { Asked } from './call.ts'
import { callOf } from './call-of.ts'
import type { Door } from './door.ts'
import { interactionOf } from './interaction-of.ts'
import { answered, describeOutcome, finishedOf, record, recorded } from './recorded.ts'

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
  if (mayWrite(interaction) && !isAboutAudit(interaction)) return change(door, audit, request, asked)
  return orFailed(door, request, asked, async () =>
    recorded(door, request, asked, await perform(behind, audit, asked)),
  )
}

/** Records that the work failed, where it does. */
async function orFailed<A extends object, P extends AnyProblem, T>(
  door: Door<A, P>,
  request: FastifyRequest,
  asked: Asked,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof AuditUnavailable)) await record(door, request, asked, failedWith(error))
    throw error
  }
}

/** What is answered when the work itself throws; the error handler says it. */
function failedWith(error: unknown): Told {
  return { status: problemOf(error).kind === 'unavailable' ? 503 : 500 }
}

const UNKNOWN: Told = { status: OUTCOME_UNKNOWN }

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
  return behind.perform(asked)
}

/**
 * Makes a change and records it. A server that keeps its own data writes both in one transaction. Otherwise the change is
 * announced before it is sent, and nothing is sent that cannot be announced; once it is made, it is answered.
 */
async function change<A extends object, P extends AnyProblem>(
  door: Door<A, P>,
  audit: FhirAudit,
  request: FastifyRequest,
  asked: Asked,
): Promise<A> {
  const { behind } = door
  const describe = (outcome: A | P) => describeOutcome(door, request, asked, outcome)
  const begun = finishedOf(door, request, asked, UNKNOWN)
  const { performRecorded } = behind
  if (performRecorded)
    return orFailed(door, request, asked, async () => {
      await audit.prepare()
      const performed = await performRecorded(asked, {
        recordsOf: outcome => audit.recordsOf(describe(outcome)),
        begun: () => audit.begun(begun),
      })
      const { outcome } = performed
      return performed.recorded ? answered(behind, outcome) : recorded(door, request, asked, outcome)
    })
  const intent = await audit.intend(begun)
  try {
    const outcome = await behind.perform(asked)
    await audit.complete(intent, describe(outcome))
    return answered(behind, outcome)
  } catch (error) {
    await audit.complete(intent, finishedOf(door, request, asked, failedWith(error)))
    throw error
  }
}
