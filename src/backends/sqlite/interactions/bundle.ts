import { parseEntries } from '../../../fhir/index.ts'
import type { Answer } from '../answer.ts'
import { batch } from '../bundle/batch.ts'
import { transaction } from '../bundle/transaction.ts'
import type { Call, Context } from '../call.ts'
import { isProblem, type Problem } from '../problem.ts'

/** Runs work that writes, and resolves when it is durable. */
export type Commit = (work: () => Answer | Problem) => Promise<Answer | Problem>

/** `POST [base]`: a batch or a transaction. */
export async function bundle(
  context: Context,
  call: Call,
  commit: Commit = context.repository.database.group,
): Promise<Answer | Problem> {
  const parsed = parseEntries(call.body, context.baseUrl)
  if (isProblem(parsed)) return parsed
  return parsed.type === 'batch'
    ? batch(context, call, parsed.entries)
    : commit(() => transaction(context, call, parsed.entries))
}
