import { outcome, resourceBody } from '../../../fhir/index.ts'
import type { Answer } from '../answer.ts'
import type { Call, Context } from '../call.ts'
import { answerOf, isProblem, type Problem } from '../problem.ts'
import type { Operation } from './operation.ts'

/** `$validate`: what would be wrong with a resource. The answer is 200 either way (R4 resource-operation-validate). */
export function validateResource(_context: Context, call: Call<Operation>): Answer | Problem {
  const { type = '' } = call.interaction
  const judged = resourceBody(resourceIn(call.body), type)
  if (!isProblem(judged)) return { status: 200, body: JSON.stringify(fine()) }
  return judged.problem === 'invalid-resource' ? { ...answerOf(judged), status: 200 } : judged
}

/** The resource itself, or the parameter of that name. */
function resourceIn(body: unknown): unknown {
  const { resourceType, parameter } = (typeof body === 'object' && body ? body : {}) as Record<
    string,
    unknown
  >
  if (resourceType !== 'Parameters' || !Array.isArray(parameter)) return body
  return parameter.find(it => it?.name === 'resource')?.resource
}

function fine(): object {
  const { resourceType, issue } = outcome('informational', 'The resource is valid')
  return { resourceType, issue: issue.map(it => ({ ...it, severity: 'information' })) }
}
