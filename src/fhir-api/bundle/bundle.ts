import { isWriting, parseEntries } from '../../fhir/index.ts'
import type { Context, Handler } from '../context.ts'
import { type Failure, isFailure } from '../failure.ts'
import type { FhirResponse } from '../response.ts'
import { performBatch } from './batch.ts'
import { toEntryRequest } from './entry.ts'
import { performTransaction } from './transaction.ts'

/** `POST [base]`: a batch or a transaction. */
export const bundle: Handler<'bundle'> = async (context, request) => {
  const parsed = parseEntries(request.body, context.baseUrl)
  if (isFailure(parsed)) return parsed
  const { type, entries } = parsed
  const passed = await context.session.passThrough?.(request)
  if (passed) return passed
  if (type === 'batch') return performAnnounced(context, it => performBatch(it, request, entries))
  const requests = entries.map(entry => toEntryRequest(request, entry))
  const perform = (it: Context) => performTransaction(it, request, entries, requests)
  // The outcome of a transaction that only writes is known when it is committed.
  const isKnown = requests.every(it => isFailure(it) || isWriting(it.interaction))
  return isKnown ? perform(context) : performAnnounced(context, perform)
}

/**
 * Audits a Bundle whose outcome is not known when its changes are committed: stores a record that announces it before the
 * first change, and replaces it by the records of the outcome.
 */
async function performAnnounced(
  context: Context,
  perform: (context: Context) => Promise<FhirResponse | Failure>,
): Promise<FhirResponse | Failure> {
  const { audited, session } = context
  const announcement = audited && (await session.local?.announce?.(audited.describeBegun()))
  if (!announcement) return perform(context)
  try {
    const outcome = await perform({ ...context, audited: undefined })
    if (!isFailure(outcome)) await outcome.durable
    await announcement.complete(isFailure(outcome) ? [] : audited.createRecords(outcome))
    return isFailure(outcome) ? outcome : { ...outcome, isRecorded: true }
  } catch (error) {
    // Nothing was changed. The caller records the failure.
    await announcement.complete([])
    throw error
  }
}
