import { isProblem } from '../../fhir/index.ts'
import type { Answer } from '../answer.ts'
import type { Call, Context } from '../call.ts'
import { answerOf, type Problem } from '../problem.ts'
import { bundleText } from '../search/bundle-text.ts'
import { entryAnswer } from './entry-answer.ts'

/** Does the entries one after the other, each by itself: one that fails says so and changes nothing for the others. */
export async function batch(context: Context, calls: readonly (Call | Problem)[]): Promise<Answer> {
  const entry: object[] = []
  for (const call of calls) {
    const outcome = isProblem(call) ? call : await context.handle(context, call)
    entry.push(entryAnswer(isProblem(outcome) ? answerOf(outcome) : outcome))
  }
  return { status: 200, headers: {}, body: bundleText({ type: 'batch-response', entry }) }
}
