import { type Entry, isWriting, limits, openBundleBudget, RESPONSE_TOO_LARGE } from '../../../fhir/index.ts'
import { bundleJson, describeFailedEntry } from '../../../fhir-api/index.ts'
import type { Answer } from '../answer.ts'
import type { Call, Context } from '../call.ts'
import { answerOf, isProblem } from '../problem.ts'
import { processorMs } from '../work.ts'
import { entryAnswer } from './entry-answer.ts'
import { entryCall } from './entry-call.ts'

/**
 * Processes the entries one after the other, each by itself: one that fails changes nothing for the others. Other
 * requests get their turn in between. What is over the budget of the Bundle is answered with `too-costly`.
 */
export async function batch(context: Context, bundle: Call, entries: readonly Entry[]): Promise<Answer> {
  const { database } = context.repository
  const budget = openBundleBudget(bundle.connection)
  const answers: string[] = []

  function process(entry: Entry): string {
    const call = budget.problem() ?? entryCall(bundle, entry)
    const outcome = isProblem(call) ? call : context.handle(context, call)
    if (isProblem(outcome)) return entryAnswer(answerOf(outcome))
    // The response to a write that does not fit has no content.
    const { body, ...written } = outcome
    const isWritten = !isProblem(call) && isWriting(call.interaction)
    return (
      budget.fitEntry(body, () => entryAnswer(outcome)) ??
      entryAnswer(isWritten ? written : answerOf(RESPONSE_TOO_LARGE))
    )
  }

  /** Returns how many milliseconds it took. */
  function takeTurn(): number {
    const began = processorMs()
    let ms = 0
    for (const entry of entries.slice(answers.length)) {
      answers.push(process(entry))
      ms = processorMs() - began
      if (ms > limits.TURN_MS) break
    }
    return ms
  }

  while (answers.length < entries.length) {
    const kept = answers.length
    try {
      // A group resolves when the event loop has turned and what it wrote is durable.
      budget.addWork(await database.group(() => database.transaction(takeTurn)))
    } catch (error) {
      // Nothing of this turn is kept. Entries of earlier turns are, and must not be reported as failed.
      if (kept === 0) throw error
      bundle.report(error)
      const failed = entryAnswer(describeFailedEntry(error))
      answers.splice(kept, answers.length, ...entries.slice(kept).map(() => failed))
    }
  }
  return { status: 200, body: bundleJson({ type: 'batch-response', entries: answers }) }
}
