import { fail, isFailure } from '../../core/index.ts'
import { type Entry, failFor, isWriting } from '../../fhir/index.ts'
import { toProblem } from '../../web/http/index.ts'
import { bundleJson } from '../bundle-json.ts'
import type { Context, Handler } from '../context.ts'
import type { FhirRequest } from '../request.ts'
import type { Failure, FhirResponse } from '../response.ts'
import { toResponse } from '../to-response.ts'
import {
  type BundleBudget,
  describeFailedEntry,
  fitEntry,
  formatEntry,
  openBundleBudget,
  toEntryRequest,
} from './entry.ts'
import { performTransaction } from './transaction.ts'

/** `POST [base]`: a batch or a transaction. */
export const bundle: Handler<'bundle'> = async (context, request) => {
  if (!request.entries) throw new Error('Cannot process a Bundle: its entries were not read')
  if (isFailure(request.entries)) return request.entries
  const { type, entries } = request.entries
  if (request.isComposed) return performComposed(context, request, entries)
  const passed = await context.session.passThrough?.(request)
  if (passed) return passed
  if (type === 'batch') return performAnnounced(context, it => performBatch(it, request, entries))
  const perform = (it: Context) => performTransaction(it, request, entries)
  // The outcome of a transaction that only writes is known when it is committed.
  const isKnown = entries.every(({ interaction }) => isFailure(interaction) || isWriting(interaction))
  return isKnown ? perform(context) : performAnnounced(context, perform)
}

async function performComposed(
  context: Context,
  request: FhirRequest,
  entries: readonly Entry[],
): Promise<FhirResponse | Failure> {
  const outcome = await performTransaction(context, request, entries)
  if (isFailure(outcome)) return outcome.reason === 'entry-failed' ? explainComposed(outcome) : outcome
  const { body: _, ...rest } = outcome
  return { ...rest, ...outcome.entries?.[0] }
}

type EntryFailed = Extract<Failure, { readonly reason: 'entry-failed' }>

const NO_PATIENT = failFor('provenance-without-patient')

/** R4's compartment has a Provenance only by a target that is the patient. */
function explainComposed(failure: EntryFailed): Failure {
  const { entry, cause } = failure
  const isOutside = entry === 1 && cause.reason === 'outside-access'
  return fail({ ...failure, isComposed: true, cause: isOutside ? NO_PATIENT : cause })
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
  const announcement = audited && (await session.local?.announce?.(await audited.describeBegun()))
  if (!announcement) return perform(context)
  try {
    const outcome = await perform({ ...context, audited: undefined })
    if (!isFailure(outcome)) await outcome.durable
    await announcement.complete(isFailure(outcome) ? [] : await audited.createRecords(outcome))
    return isFailure(outcome) ? outcome : { ...outcome, isRecorded: true }
  } catch (error) {
    // Nothing was changed. The caller records the failure.
    await announcement.complete([])
    throw error
  }
}

interface Processed {
  readonly response: FhirResponse
  readonly text: string
  readonly error?: unknown
}

/**
 * Processes the entries one after the other and independently, and lets other requests run in between. Entries beyond the
 * budget of the Bundle fail as too costly. Once the database is unavailable, all further entries fail.
 */
export async function performBatch(
  context: Context,
  bundle: FhirRequest,
  entries: readonly Entry[],
): Promise<FhirResponse> {
  const budget = openBundleBudget(bundle)
  const done: Processed[] = []
  while (done.length < entries.length) {
    const turn = await takeTurn(context, bundle, budget, entries.slice(done.length))
    // Nothing is acknowledged before it is durable.
    const lost = await findLoss(context)
    done.push(...(await Promise.all(turn.map(it => confirm(it, lost)))))
    const error = done.find(isUnavailable)?.error
    for (const it of new Set(done.slice(-turn.length).flatMap(it => it.error ?? []))) bundle.report(it)
    if (error !== undefined) {
      if (done.every(it => it.error !== undefined)) throw error
      while (done.length < entries.length) done.push(describeThrown(error))
    }
    await bundle.work.pause()
  }
  const body = bundleJson({ type: 'batch-response', entries: done.map(it => it.text) })
  return { status: 200, body, entries: done.map(it => it.response) }
}

/** Processes entries until other requests should run. */
async function takeTurn(
  context: Context,
  bundle: FhirRequest,
  budget: BundleBudget,
  entries: readonly Entry[],
): Promise<readonly Processed[]> {
  const turn: Processed[] = []
  for (const entry of entries) {
    turn.push(await processEntry(context, bundle, budget, entry).catch(describeThrown))
    if (bundle.work.isLong || turn.some(isUnavailable)) break
  }
  return turn
}

async function processEntry(
  context: Context,
  bundle: FhirRequest,
  budget: BundleBudget,
  entry: Entry,
): Promise<Processed> {
  const request = budget.problem() ?? toEntryRequest(bundle, entry)
  const outcome = isFailure(request) ? request : await context.handle(context, request)
  if (isFailure(outcome) || isFailure(request)) {
    const response = isFailure(outcome) ? toResponse(outcome) : outcome
    return { response, text: formatEntry(response) }
  }
  return { response: outcome, text: fitEntry(budget, outcome, isWriting(request.interaction)) }
}

/** The error by which reads or writes of this turn were lost, if any. */
async function findLoss({ session }: Context): Promise<unknown> {
  try {
    await session.flush?.()
    return undefined
  } catch (error) {
    return error
  }
}

/** The entry, if its writes, or the writes that it may have read, are durable; otherwise the error. */
async function confirm(processed: Processed, lost: unknown): Promise<Processed> {
  const { durable } = processed.response
  try {
    await durable
  } catch (error) {
    return describeThrown(error)
  }
  return durable || lost === undefined || processed.error !== undefined ? processed : describeThrown(lost)
}

function isUnavailable({ error }: Processed): boolean {
  return error !== undefined && toProblem(error).kind === 'unavailable'
}

function describeThrown(error: unknown): Processed {
  const response = describeFailedEntry(error)
  return { response, text: formatEntry(response), error }
}
