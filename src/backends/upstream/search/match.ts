import { fail, isProblem, type Params } from '../../../fhir/index.ts'
import type { Call, Context } from '../call.ts'
import type { Problem } from '../problem.ts'
import { eachFound, searchFor } from './collect.ts'
import type { Released } from './fetch-page.ts'

/** What a condition finds. */
export interface Condition {
  readonly match: Released | undefined
  /** Whether the upstream finds nothing else by it; otherwise it ignores a parameter and must not decide by itself. */
  readonly isTrusted: boolean
}

/**
 * Looks up what a conditional interaction speaks of: one resource, or none. It is a search: only what the caller
 * reaches by searching is looked at, so that it tells nothing about the rest (attacks.md 18). Each match is compared with
 * the condition, for an upstream that ignores a parameter would have another resource overwritten or deleted.
 */
export async function lookUpCondition(
  context: Context,
  call: Call,
  type: string,
  params: Params,
): Promise<Condition | Problem> {
  const found: Released[] = []
  let strays = 0
  const count = await eachFound(context, searchFor(call, type, params), 1, page => {
    found.push(...page.matches)
    strays += page.strays
  })
  if (typeof count === 'number') return { match: found[0], isTrusted: strays === 0 }
  return count.problem === 'too-costly' ? fail({ problem: 'multiple-matches', type }) : count
}

/** The one resource that a condition finds; undefined when there is none. */
export async function matchOf(
  context: Context,
  call: Call,
  type: string,
  params: Params,
): Promise<Released | Problem | undefined> {
  const condition = await lookUpCondition(context, call, type, params)
  return isProblem(condition) ? condition : condition.match
}
