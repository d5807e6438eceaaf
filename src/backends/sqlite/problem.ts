import { type FhirProblem, turndownOf } from '../../fhir/index.ts'
import type { Answer } from './answer.ts'

export { isProblem } from '../../fhir/index.ts'

export type Problem = FhirProblem

/** The response to a problem. */
export function answerOf(problem: Problem): Answer {
  const { status, outcome, headers } = turndownOf(problem)
  return { status, body: JSON.stringify(outcome), ...(headers && { headers }) }
}
