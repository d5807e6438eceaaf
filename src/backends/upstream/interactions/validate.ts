import { isProblem, isRecord, outcome, resourceBody, turndownOf } from '../../../fhir/index.ts'
import type { Answer } from '../answer.ts'
import type { Call, Context } from '../call.ts'
import type { Problem } from '../problem.ts'
import type { Operation } from './operation.ts'

/**
 * `$validate`: what would be wrong with a resource, by the R4 definitions and without the upstream, whose words about
 * it could not be judged. The answer is 200 either way (R4 resource-operation-validate).
 */
export async function validateResource(_context: Context, call: Call<Operation>): Promise<Answer | Problem> {
  const { type = '' } = call.interaction
  const judged = resourceBody(resourceIn(call.body), type)
  if (!isProblem(judged)) return answered(fine())
  return judged.problem === 'invalid-resource' ? answered(turndownOf(judged).outcome) : judged
}

/** The resource itself, or the parameter of that name. */
function resourceIn(body: unknown): unknown {
  if (!isRecord(body) || body.resourceType !== 'Parameters' || !Array.isArray(body.parameter)) return body
  return body.parameter.find(it => isRecord(it) && it.name === 'resource')?.resource
}

function answered(said: object): Answer {
  return { status: 200, headers: {}, body: JSON.stringify(said) }
}

function fine(): object {
  const { resourceType, issue } = outcome('informational', 'The resource is valid')
  return { resourceType, issue: issue.map(it => ({ ...it, severity: 'information' })) }
}
