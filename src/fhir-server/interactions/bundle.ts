import { parseEntries } from '../../fhir/index.ts'
import { batch } from '../bundle/batch.ts'
import { transaction } from '../bundle/transaction.ts'
import type { Handler } from '../call.ts'
import { isProblem } from '../problem.ts'

/** `POST [base]`: a batch or a transaction. */
export const bundle: Handler<'bundle'> = (context, call) => {
  const parsed = parseEntries(call.body, context.baseUrl)
  if (isProblem(parsed)) return parsed
  return parsed.type === 'batch'
    ? batch(context, call, parsed.entries)
    : transaction(context, call, parsed.entries)
}
