import { fail } from '../../fhir/index.ts'
import type { Failure } from '../../fhir-api/index.ts'

export type Problem = Failure

/** A page that is too large, though it was asked for with one resource. */
export function explainPageFailure(problem: Problem): Problem {
  if (problem.problem !== 'upstream-broken' || problem.excess === undefined) return problem
  return fail({
    problem: 'too-costly',
    text: `Cannot use a page of the upstream FHIR server, even with _count=1: ${problem.excess}`,
  })
}

export function failTooCostly(most: number): Problem {
  return fail({
    problem: 'too-costly',
    text: `Cannot check more than ${most} resources for this request: request less data`,
  })
}
