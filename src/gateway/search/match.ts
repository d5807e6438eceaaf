import { fail, isProblem, type Params } from '../../fhir/index.ts'
import type { Call, Context } from '../call.ts'
import type { Problem } from '../problem.ts'
import { collect, searchFor } from './collect.ts'
import type { Released } from './fetch-page.ts'

/**
 * The one resource that a conditional interaction speaks of; undefined when none matches. It is a search: only what
 * the caller reaches by searching is looked at, so that it tells nothing about the rest (attacks.md 18).
 */
export async function matchOf(
  context: Context,
  call: Call,
  type: string,
  params: Params,
): Promise<Released | Problem | undefined> {
  const found = await collect(context, searchFor(call, type, params), 1)
  if (!isProblem(found)) return found[0]
  const problem = found as Problem
  return problem.problem === 'too-costly' ? fail({ problem: 'multiple-matches', type }) : problem
}
