import { parseEntries } from '../../fhir/index.ts'
import type { Answer } from '../answer.ts'
import { batch } from '../bundle/batch.ts'
import { transaction } from '../bundle/transaction.ts'
import type { BundleCall, Context } from '../call.ts'
import { isProblem, type Problem } from '../problem.ts'

/** `POST [base]`: a batch or a transaction. */
export async function bundle(context: Context, call: BundleCall): Promise<Answer | Problem> {
  const parsed = parseEntries(call.body, context.baseUrl)
  if (isProblem(parsed)) return parsed
  return parsed.type === 'batch'
    ? batch(context, call, parsed.entries)
    : context.repository.database.group(() => transaction(context, call, parsed.entries))
}
