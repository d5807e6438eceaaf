import {
  type BundleBudget,
  type Entry,
  exactText,
  fail,
  isProblem,
  isRecord,
  isResource,
  openBundleBudget,
  parseExact,
  RESPONSE_TOO_LARGE,
} from '../../../fhir/index.ts'
import { createTurns } from '../../../fhir-api/index.ts'
import type { Answer } from '../answer.ts'
import type { Call, Context } from '../call.ts'
import { mayShow } from '../interactions/written.ts'
import { answerOf, type Problem } from '../problem.ts'
import { bundleOfTexts } from '../search/bundle-text.ts'
import { declined } from '../upstream/declined.ts'
import { sending } from '../upstream/request-of.ts'
import { resourceIn } from '../upstream/resource-in.ts'
import { fit } from './batch.ts'
import { conditionalReferences } from './conditional-references.ts'
import { entryAnswer } from './entry-answer.ts'
import { fullUrlProblem, linked } from './identities.ts'
import { type Step, stepOf, stepProblem } from './step.ts'

type Write = Extract<Step, { readonly kind: 'write' }>

/**
 * Judges all entries, then sends what is to be written as one transaction, each entry bound to the version that was
 * judged. What is read is read before, so that a refusal writes nothing, and again after.
 */
export async function transaction(
  context: Context,
  bundle: Call,
  entries: readonly Entry[],
  calls: readonly (Call | Problem)[],
): Promise<Answer | Problem> {
  const misnamed = fullUrlProblem(entries, context.baseUrl)
  if (misnamed) return misnamed
  const steps: Step[] = []
  const takeTurns = createTurns()
  const reads = openBundleBudget(bundle.connection)
  for (const [entry, call] of calls.entries()) {
    const step = reads.problem() ?? (isProblem(call) ? call : await judgedStep(context, call, reads))
    if (isProblem(step)) return fail({ problem: 'gateway-entry-failed', entry, cause: step })
    steps.push(step)
    await takeTurns()
  }
  const refused = await problemAmong(context, steps, entries)
  if (refused) return refused
  const written = await send(context, bundle, steps, entries)
  if (isProblem(written)) return written as Problem
  const entry: string[] = []
  const budget = openBundleBudget(bundle.connection)
  for (const step of steps) {
    entry.push(await answerTo(context, budget, step, written as ReadonlyMap<Step, WrittenEntry>))
    await takeTurns()
  }
  return { status: 200, headers: {}, body: bundleOfTexts('transaction-response', entry) }
}

async function judgedStep(context: Context, call: Call, reads: BundleBudget): Promise<Step | Problem> {
  const step = await stepOf(context, call)
  if (isProblem(step)) return step
  if (step.kind === 'write') return referring(context, step)
  if (step.kind === 'answered') return step
  const answer = await context.handle(context, call)
  if (isProblem(answer)) return answer
  return reads.takeRoom(entryAnswer(answer)) ? step : RESPONSE_TOO_LARGE
}

/** With real references in the place of conditional ones. */
async function referring(context: Context, step: Write): Promise<Write | Problem> {
  const found = await conditionalReferences(context, step.call, step.resource)
  if (isProblem(found)) return found as Problem
  if (!step.resource || found.size === 0) return step
  const resource = linked(step.resource, found) as NonNullable<Write['resource']>
  return { ...step, resource }
}

async function problemAmong(
  context: Context,
  steps: readonly Step[],
  entries: readonly Entry[],
): Promise<Problem | undefined> {
  const identities = identitiesOf(steps, entries)
  const writing = {
    ...context,
    writing: new Set(
      steps.flatMap(it => (it.kind === 'write' && it.permission !== 'd' ? [it.identity] : [])),
    ),
  }
  const written = new Set<string>()
  for (const [entry, step] of steps.entries()) {
    const cause = await stepProblem(writing, step, identities)
    if (cause) return fail({ problem: 'gateway-entry-failed', entry, cause })
    if (step.kind !== 'write' || step.request.method === 'POST') continue
    if (written.has(step.identity))
      return fail({
        problem: 'bad-bundle',
        text: 'Cannot process transaction: two entries write the same resource',
        entry,
      })
    written.add(step.identity)
  }
  return undefined
}

function identitiesOf(steps: readonly Step[], entries: readonly Entry[]): ReadonlyMap<string, string> {
  return new Map(
    steps.flatMap((step, at) => {
      const fullUrl = entries[at]?.fullUrl
      const identity = step.kind === 'read' ? undefined : step.identity
      return fullUrl === undefined || identity === undefined ? [] : [[fullUrl, identity] as const]
    }),
  )
}

/** What the upstream says of each entry that was sent. */
async function send(
  context: Context,
  bundle: Call,
  steps: readonly Step[],
  entries: readonly Entry[],
): Promise<ReadonlyMap<Step, WrittenEntry> | Problem> {
  const writes = steps.filter(step => step.kind === 'write').toSorted((a, b) => rankOf(a) - rankOf(b))
  if (writes.length === 0) return new Map()
  // Entries that are not sent are named by what they are.
  const known = new Map(
    [...identitiesOf(steps, entries)].filter(([, identity]) => !identity.startsWith('http://new.invalid/')),
  )
  const fullUrls = new Map(steps.map((step, at) => [step, entries[at]?.fullUrl]))
  const entry = writes.map(step => {
    const fullUrl = fullUrls.get(step)
    return {
      ...(fullUrl !== undefined && { fullUrl }),
      ...(step.resource && { resource: linked(step.resource, known) }),
      request: step.request,
    }
  })
  const body = { resourceType: 'Bundle', type: 'transaction', entry }
  const answer = await context.upstream.ask(sending(bundle, 'POST', '', body, context.addresses))
  if (isProblem(answer)) return answer
  if (answer.status >= 300) return declined(answer, bundle.access)
  const response = resourceIn(answer)
  if (isProblem(response)) return response
  const exact = parseExact(answer.text)
  return answersIn(context, writes, response.entry, isRecord(exact) ? exact.entry : undefined)
}

/** DocumentReferences come last, so that no upstream stores them before the Binaries that they name (`conveys`). */
function rankOf({ request }: Write): number {
  return /^DocumentReference\b/.test(request.url ?? '') ? 1 : 0
}

async function answersIn(
  context: Context,
  writes: readonly Write[],
  answered: unknown,
  exact: unknown,
): Promise<ReadonlyMap<Step, WrittenEntry> | Problem> {
  if (!Array.isArray(answered) || !Array.isArray(exact) || answered.length !== writes.length)
    return fail({ problem: 'upstream-broken', why: 'it did not answer every entry of a transaction' })
  const answers = new Map<Step, WrittenEntry>()
  const takeTurns = createTurns()
  for (const [at, step] of writes.entries()) {
    answers.set(step, await writtenEntry(context, step, answered[at], exact[at]))
    await takeTurns()
  }
  return answers
}

interface WrittenEntry {
  readonly fullUrl?: string
  readonly resource?: unknown
  readonly response: object
}

/** What is told of a write: its status and version, and the resource where the caller may read it. */
async function writtenEntry(
  context: Context,
  { call }: Write,
  answered: unknown,
  exact: unknown,
): Promise<WrittenEntry> {
  const { resource, response } = isRecord(answered) ? answered : {}
  const { status, location, etag, lastModified } = isRecord(response) ? response : {}
  const place =
    typeof location === 'string'
      ? context.addresses.outwardAddress(context.addresses.inward(location))
      : undefined
  const isShown =
    call.preferences.answer === 'representation' &&
    isResource(resource) &&
    (await mayShow(context, call, resource))
  return {
    ...(place !== undefined && { fullUrl: place.replace(/\/_history\/[^/]+$/, '') }),
    ...(isShown && isRecord(exact) && { resource: exact.resource }),
    response: {
      status: typeof status === 'string' ? status.slice(0, 32) : '200 OK',
      ...(place !== undefined && { location: place }),
      ...(typeof etag === 'string' && { etag }),
      ...(typeof lastModified === 'string' && { lastModified }),
    },
  }
}

async function answerTo(
  context: Context,
  budget: BundleBudget,
  step: Step,
  written: ReadonlyMap<Step, WrittenEntry>,
): Promise<string> {
  switch (step.kind) {
    case 'answered':
      return fit(budget, step.answer, true)
    case 'write': {
      const { resource, ...rest } = written.get(step) ?? { response: { status: '200 OK' } }
      const text = exactText({ ...rest, resource })
      return budget.takeRoom(text) ? text : exactText(rest)
    }
    case 'read': {
      const answer = await context.handle(context, step.call)
      return isProblem(answer) ? entryAnswer(answerOf(answer)) : fit(budget, answer, false)
    }
  }
}
