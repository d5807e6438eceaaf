import {
  type BundleBudget,
  isProblem,
  isWriting,
  openBundleBudget,
  RESPONSE_TOO_LARGE,
} from '../../../fhir/index.ts'
import { createTurns, describeFailedEntry } from '../../../fhir-api/index.ts'
import type { Answer } from '../answer.ts'
import type { Call, Context } from '../call.ts'
import { answerOf, type Problem } from '../problem.ts'
import { bundleOfTexts } from '../search/bundle-text.ts'
import { entryAnswer } from './entry-answer.ts'

/**
 * Processes the entries one after the other, each by itself: one that fails changes nothing for the others. What is over
 * the budget of the Bundle is answered with `too-costly`.
 */
export async function batch(
  context: Context,
  bundle: Call,
  calls: readonly (Call | Problem)[],
): Promise<Answer> {
  const budget = openBundleBudget(bundle.connection)
  const takeTurns = createTurns()
  const entries: string[] = []
  for (const call of calls) {
    entries.push(await processEntry(context, budget, call))
    await takeTurns()
  }
  return { status: 200, headers: {}, body: bundleOfTexts('batch-response', entries) }
}

async function processEntry(context: Context, budget: BundleBudget, call: Call | Problem): Promise<string> {
  const allowed = budget.problem() ?? call
  if (isProblem(allowed)) return entryAnswer(answerOf(allowed))
  try {
    const outcome = await context.handle(context, allowed)
    return isProblem(outcome)
      ? entryAnswer(answerOf(outcome))
      : fit(budget, outcome, isWriting(allowed.interaction))
  } catch (error) {
    allowed.report(error)
    return entryAnswer({ ...describeFailedEntry(error), headers: {} })
  }
}

/** The answer as far as the response has room for it. What was written is said to be written, without its content. */
export function fit(budget: BundleBudget, answer: Answer, isWritten: boolean): string {
  const { body, ...rest } = answer
  return (
    budget.fitEntry(typeof body === 'string' ? body : undefined, () => entryAnswer(answer)) ??
    entryAnswer(isWritten ? rest : answerOf(RESPONSE_TOO_LARGE))
  )
}
