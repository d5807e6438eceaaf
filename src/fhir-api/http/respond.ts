import type { FastifyRequest } from 'fastify'
import { AuditUnavailable, type FhirAudit, isAboutAudit, OUTCOME_UNKNOWN } from '../../audit/index.ts'
import { type AnyProblem, type FhirProblem, fail, isProblem, mayWrite } from '../../fhir/index.ts'
import { problemOf } from '../../web/index.ts'
import type { AuditOutcome, Behind } from '../behind.ts'
import type { FhirRequest } from '../call.ts'
import { findInteraction } from './find-interaction.ts'
import { readRequest } from './read-request.ts'
import { describeOutcome, describeRequest, record, recordOutcome, toResponse } from './record.ts'
import type { FhirApi } from './routes.ts'

/** The response to a request that came through, which may go out. */
export async function respondTo<A extends object, P extends AnyProblem>(
  door: FhirApi<A, P>,
  request: FastifyRequest,
): Promise<A> {
  const { interaction = findInteraction(request, door) } = request
  if (request.bodyProblem) return recordOutcome(door, request, { interaction }, request.bodyProblem)
  if (interaction.kind === 'misunderstood')
    return recordOutcome(door, request, { interaction }, fail({ ...interaction, problem: 'misunderstood' }))
  const asked = readRequest(interaction, request)
  if (isProblem(asked)) return recordOutcome(door, request, { interaction }, asked)
  const { audit, behind } = door
  if (!audit) return toResponse(behind, await behind.perform(asked))
  if (mayWrite(interaction) && !isAboutAudit(interaction)) return performWrite(door, audit, request, asked)
  return recordingFailures(door, request, asked, async () =>
    recordOutcome(door, request, asked, await perform(behind, audit, asked)),
  )
}

/** Records that the work failed, where it does. */
async function recordingFailures<A extends object, P extends AnyProblem, T>(
  door: FhirApi<A, P>,
  request: FastifyRequest,
  asked: FhirRequest,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof AuditUnavailable)) await record(door, request, asked, describeError(error))
    throw error
  }
}

/** What is answered when the work itself throws; the error handler says it. */
function describeError(error: unknown): AuditOutcome {
  return { status: problemOf(error).kind === 'unavailable' ? 503 : 500 }
}

const UNKNOWN: AuditOutcome = { status: OUTCOME_UNKNOWN }

/** What the audit trail keeps it answers itself; what it could not keep is not begun. */
async function perform<A extends object, P extends AnyProblem>(
  behind: Behind<A, P>,
  audit: FhirAudit,
  asked: FhirRequest,
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
async function performWrite<A extends object, P extends AnyProblem>(
  door: FhirApi<A, P>,
  audit: FhirAudit,
  request: FastifyRequest,
  asked: FhirRequest,
): Promise<A> {
  const { behind } = door
  const describe = (outcome: A | P) => describeOutcome(door, request, asked, outcome)
  const begun = describeRequest(door, request, asked, UNKNOWN)
  const { performRecorded } = behind
  if (performRecorded)
    return recordingFailures(door, request, asked, async () => {
      await audit.prepare()
      const performed = await performRecorded(asked, {
        recordsOf: outcome => audit.recordsOf(describe(outcome)),
        begun: () => audit.begun(begun),
      })
      const { outcome } = performed
      return performed.recorded ? toResponse(behind, outcome) : recordOutcome(door, request, asked, outcome)
    })
  const intent = await audit.intend(begun)
  try {
    const outcome = await behind.perform(asked)
    await audit.complete(intent, describe(outcome))
    return toResponse(behind, outcome)
  } catch (error) {
    await audit.complete(intent, describeRequest(door, request, asked, describeError(error)))
    throw error
  }
}
