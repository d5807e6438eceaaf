import type { Entry } from '../../fhir/index.ts'
import type { Answer } from '../answer.ts'
import { bundleJson } from '../bundle-json.ts'
import type { Call, Context } from '../call.ts'
import { answerOf, isProblem } from '../problem.ts'
import { entryAnswer } from './entry-answer.ts'
import { entryCall } from './entry-call.ts'

/** Does the entries one after the other, each by itself: one that fails says so and changes nothing for the others. */
export function batch(context: Context, bundle: Call, entries: readonly Entry[]): Answer {
  const answers = entries.map(entry => {
    const call = entryCall(bundle, entry)
    const outcome = isProblem(call) ? call : context.handle(context, call)
    return isProblem(outcome) ? answerOf(outcome) : outcome
  })
  return { status: 200, body: bundleJson({ type: 'batch-response', entries: answers.map(entryAnswer) }) }
}
