import { isFailure } from '../../core/index.ts'
import { type Entry, failFor, type Resource, toPlain, type Work } from '../../fhir/index.ts'
import { failHidden } from '../../smart/index.ts'
import { checkNewContent } from '../access/check-content.ts'
import type { Committed } from '../backend.ts'
import { bundleJson } from '../bundle-json.ts'
import type { Context } from '../context.ts'
import { validateInTurns } from '../interactions/plan-write.ts'
import { attempt, Conflict } from '../interactions/write.ts'
import { describeWrite, mayReadContent, respondToWrite } from '../interactions/write-response.ts'
import type { FhirRequest } from '../request.ts'
import { type Failure, type FhirResponse, failEntry } from '../response.ts'
import { toResponse } from '../to-response.ts'
import {
  type BundleBudget,
  decideEntries,
  describeFailedEntry,
  fitEntry,
  formatEntry,
  openBundleBudget,
  RESPONSE_TOO_LARGE,
} from './entry.ts'
import {
  type BundleStep,
  checkFullUrls,
  findRepeatedWrite,
  linkSteps,
  type PlannedRequest,
  planStep,
  type WriteStep,
} from './steps.ts'

interface CommittedTransaction {
  readonly steps: readonly BundleStep[]
  readonly committed: ReadonlyMap<BundleStep, Committed>
  readonly durable?: Promise<void> | undefined
}

/**
 * Performs all entries or none. Every entry is planned and checked; then all changes are committed together. Reads are
 * tried before the commit, so that one that fails changes nothing, and performed after it.
 */
export async function performTransaction(
  context: Context,
  bundle: FhirRequest,
  entries: readonly Entry[],
): Promise<FhirResponse | Failure> {
  const invalid = context.session.local ? undefined : checkFullUrls(entries, context.baseUrl)
  if (invalid) return invalid
  // Before anything is locked.
  const requests: (PlannedRequest | Failure)[] = []
  for await (const request of decideEntries(bundle, entries)) requests.push(request)
  for (const request of requests) if (!isFailure(request)) await validateInTurns(request)
  const interactions = requests.flatMap(it => (isFailure(it) ? [] : [it.interaction]))
  const result = await attempt(context, interactions, () =>
    planAndCommitAll(context, bundle, entries, requests),
  )
  return isFailure(result) ? result : respond(context, bundle, result)
}

async function planAndCommitAll(
  context: Context,
  bundle: FhirRequest,
  entries: readonly Entry[],
  requests: readonly (PlannedRequest | Failure)[],
): Promise<CommittedTransaction | Failure | Conflict> {
  const { session, audited } = context
  const { work } = bundle
  const budget = openBundleBudget(bundle)
  const planned: BundleStep[] = []
  for (const [entry, request] of requests.entries()) {
    const step = budget.problem() ?? (isFailure(request) ? request : await planStep(context, request, entry))
    if (isFailure(step)) return failEntry(entry, step)
    planned.push(step)
    await work.pause()
  }
  const repeated = findRepeatedWrite(planned)
  if (repeated) return repeated
  const steps = await linkSteps(context, planned, entries, work)
  const writes = steps.filter(step => step.kind === 'write').toSorted((a, b) => rank(a) - rank(b))
  const failure = (await checkWrites(context, steps, work)) ?? (await tryReads(context, budget, steps, work))
  if (failure) return failure
  if (writes.length === 0) return { steps, committed: new Map() }
  const pair = (committed: readonly Committed[]) =>
    new Map<BundleStep, Committed>(
      writes.flatMap((step, at) => (committed[at] ? [[step, committed[at]]] : [])),
    )
  const result = await session.commit(
    writes.map(step => step.planned.write),
    {
      isTransaction: true,
      records: audited && (committed => audited.createRecords(describe(steps, pair(committed)))),
    },
  )
  switch (result.kind) {
    case 'committed':
      return { steps, committed: pair(result.committed), durable: result.durable }
    case 'conflict':
      return new Conflict(result.failure)
    case 'matched':
      return result.failure
    case 'failed': {
      const step = result.write === undefined ? undefined : writes[result.write]
      const { status } = toResponse(result.failure)
      const entries = result.committed && describeEach(steps, pair(result.committed), status)
      return step ? failEntry(step.entry, result.failure, entries) : result.failure
    }
  }
}

/** R4 http.html#trules: the order of the changes. DocumentReferences come after the Binaries that they name. */
function rank({ planned: { write } }: WriteStep): number {
  if (write.kind === 'delete') return 0
  if (write.type === 'DocumentReference') return 3
  return write.kind === 'create' ? 1 : 2
}

/** The outcome of a transaction that only writes, for the audit trail. */
function describe(steps: readonly BundleStep[], committed: ReadonlyMap<BundleStep, Committed>): FhirResponse {
  const entries = steps.flatMap(step => {
    if (step.kind === 'known') return [step.response]
    const result = committed.get(step)
    return step.kind === 'write' && result ? [describeWrite(step.planned.write, result)] : []
  })
  return { status: 200, entries }
}

/** The outcome of every entry of a transaction that failed after its commit, for the audit trail. */
function describeEach(
  steps: readonly BundleStep[],
  committed: ReadonlyMap<BundleStep, Committed>,
  status: number,
): readonly FhirResponse[] {
  return steps.map(step => {
    if (step.kind === 'known') return step.response
    const result = committed.get(step)
    return step.kind === 'write' && result ? describeWrite(step.planned.write, result) : { status }
  })
}

async function respond(
  context: Context,
  bundle: FhirRequest,
  { steps, committed, durable }: CommittedTransaction,
): Promise<FhirResponse> {
  const budget = openBundleBudget(bundle)
  const entries: FhirResponse[] = []
  const texts: string[] = []
  for (const step of steps) {
    const response = await respondToStep(context, bundle, step, committed.get(step))
    entries.push(response)
    texts.push(fitEntry(budget, response, step.kind !== 'read'))
    await bundle.work.pause()
  }
  const isRecorded = context.audited !== undefined && durable !== undefined
  return {
    status: 200,
    body: bundleJson({ type: 'transaction-response', entries: texts }),
    entries,
    durable,
    ...(isRecorded && { isRecorded }),
  }
}

async function respondToStep(
  context: Context,
  bundle: FhirRequest,
  step: BundleStep,
  committed: Committed | undefined,
): Promise<FhirResponse> {
  switch (step.kind) {
    case 'known':
      return step.response
    case 'write':
      if (!committed) throw new Error('Cannot respond to an entry: the backend did not say what it has done')
      return respondToWrite(context, step.planned.request, step.planned.write, committed)
    case 'read':
      return readAfterCommit(context, bundle, step.request)
  }
}

/** The changes are committed: an error is the response to this entry, not to the transaction. */
async function readAfterCommit(
  context: Context,
  bundle: FhirRequest,
  request: PlannedRequest,
): Promise<FhirResponse> {
  try {
    const outcome = await context.handle(context, request)
    return isFailure(outcome) ? toResponse(outcome) : outcome
  } catch (error) {
    bundle.report(error)
    return describeFailedEntry(error)
  }
}

/** Checks the new content of every change, with references between the entries in place. */
async function checkWrites(
  context: Context,
  steps: readonly BundleStep[],
  work: Work,
): Promise<Failure | undefined> {
  const writes = steps.filter(step => step.kind === 'write')
  const identities = new Set(writes.flatMap(({ content, identity }) => (content ? [identity] : [])))
  const transaction = {
    identities,
    newPatients: collectNewPatients(writes),
    known: new Set(identities),
  }
  for (const { entry, planned, content } of writes) {
    const { request, permission, write } = planned
    const before = write.kind === 'update' ? write.before : undefined
    const failure =
      (content && permission !== 'd'
        ? await checkNewContent(context, request, permission, content, before, transaction)
        : undefined) ?? planned.conflict
    if (failure) return failEntry(entry, failure)
    await work.pause()
  }
  return undefined
}

/** Only those whose id the server chooses: stored data may already refer to any other id. */
function collectNewPatients(writes: readonly WriteStep[]): ReadonlyMap<string, Resource> {
  return new Map(
    writes.flatMap(({ identity, content }) =>
      content?.resourceType === 'Patient' && content.id === undefined
        ? [[identity.slice('Patient/'.length), toPlain(content)] as const]
        : [],
    ),
  )
}

/** Performs the reads before the commit, so that one that fails changes nothing. A resource to be written is read as planned. */
async function tryReads(
  context: Context,
  budget: BundleBudget,
  steps: readonly BundleStep[],
  work: Work,
): Promise<Failure | undefined> {
  const written = new Map(
    steps.flatMap(step => (step.kind === 'write' ? [[step.identity, step] as const] : [])),
  )
  for (const step of steps) {
    if (step.kind !== 'read') continue
    const { interaction } = step.request
    const target = 'type' in interaction && 'id' in interaction ? `${interaction.type}/${interaction.id}` : ''
    const write = written.get(target)
    const failure =
      budget.problem() ??
      (write ? await foresee(context, step.request, write) : await tryRead(context, budget, step.request))
    if (failure) return failEntry(step.entry, failure)
    await work.pause()
  }
  return undefined
}

async function tryRead(
  context: Context,
  budget: BundleBudget,
  request: PlannedRequest,
): Promise<Failure | undefined> {
  const outcome = await context.handle(context, request)
  if (isFailure(outcome)) return outcome
  return budget.takeSpace(formatEntry(outcome)) ? undefined : RESPONSE_TOO_LARGE
}

/** Fails if the caller could not read a resource after the transaction has written it. */
async function foresee(
  context: Context,
  request: PlannedRequest,
  { content }: WriteStep,
): Promise<Failure | undefined> {
  if (request.interaction.kind !== 'read') return undefined
  const { type, id } = request.interaction
  if (!content) return failFor('gone', { type, id })
  return (await mayReadContent(context, request, { ...toPlain(content), id }))
    ? undefined
    : failHidden(request.access, 'r', type, id)
}
