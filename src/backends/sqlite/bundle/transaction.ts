import {
  type Entry,
  type EntryInteraction,
  fail,
  limits,
  openBundleBudget,
  RESPONSE_TOO_LARGE,
} from '../../../fhir/index.ts'
import { bundleJson } from '../../../fhir-api/index.ts'
import type { Answer } from '../answer.ts'
import type { Call, Context } from '../call.ts'
import { isProblem, type Problem } from '../problem.ts'
import type { Repository } from '../repository/repository.ts'
import { openReadBudget } from '../work.ts'
import { entryAnswer } from './entry-answer.ts'
import { entryCall } from './entry-call.ts'
import { identify, type Step } from './identify.ts'
import { linkReferences } from './references.ts'

// R4 http.html#trules: the order of the work, whatever the order of the entries. DocumentReferences are written
// after the Binaries that they name (`isConveyed`).
const ORDER = ['delete', 'create', 'write', 'document', 'read'] as const

/**
 * Does all entries or none: in one transaction, which a problem with any entry undoes. SQLite does it in one go, so that
 * what it may cost is bounded: by the rows that it writes, the time that it reads, and the size of the response.
 */
export function transaction(context: Context, bundle: Call, entries: readonly Entry[]): Answer | Problem {
  const calls: Call<EntryInteraction>[] = []
  for (const [at, entry] of entries.entries()) {
    const call = entryCall(bundle, entry)
    if (isProblem(call)) return fail({ problem: 'entry-failed', entry: at, cause: call })
    calls.push(call)
  }
  return context.repository.transaction(
    () => run(inside(context), bundle, calls, entries),
    result => !isProblem(result),
  )
}

/** A problem with one entry undoes all of them: savepoints for each would be most of what a transaction costs. */
function inside(context: Context): Context {
  const repository: Repository = { ...context.repository, transaction: work => work() }
  return { ...context, repository, reads: openReadBudget() }
}

function run(
  context: Context,
  bundle: Call,
  calls: readonly Call<EntryInteraction>[],
  entries: readonly Entry[],
): Answer | Problem {
  const budget = openBundleBudget(bundle.connection)
  const rowsBefore = context.repository.indexRows()
  const identified = identify(context, calls, entries)
  if (isProblem(identified)) return identified
  const steps = linkReferences(context, identified)
  if (isProblem(steps)) return steps
  const writing = { ...context, writing: new Set(steps.flatMap(writtenBy)) }
  const answers: string[] = new Array(steps.length)
  for (const stage of ORDER)
    for (const [at, step] of steps.entries()) {
      if (stageOf(step) !== stage) continue
      const outcome = step.answer ?? perform(writing, step.call, stage)
      if (isProblem(outcome)) return fail({ problem: 'entry-failed', entry: at, cause: outcome })
      if (context.repository.indexRows() - rowsBefore > limits.INDEX_ROWS)
        return fail({ problem: 'entry-failed', entry: at, cause: TOO_MANY_ROWS })
      const text = entryAnswer(outcome)
      const hasRoom = budget.takeRoom(text)
      if (!hasRoom && stage === 'read')
        return fail({ problem: 'entry-failed', entry: at, cause: RESPONSE_TOO_LARGE })
      // What was written is said to be written, without its content.
      const { body: _, ...written } = outcome
      answers[at] = hasRoom ? text : entryAnswer(written)
    }
  return {
    status: 200,
    body: bundleJson({ type: 'transaction-response', entries: answers }),
  }
}

const TOO_MANY_ROWS = fail({
  problem: 'too-costly',
  text: `Cannot process transaction: it writes more than ${limits.INDEX_ROWS} search values`,
})

function perform(
  context: Context,
  call: Call<EntryInteraction>,
  stage: (typeof ORDER)[number],
): Answer | Problem {
  const work = () => context.handle(context, call)
  return stage === 'read' && context.reads ? context.reads.spend(work) : work()
}

/** What a step makes or changes. */
function writtenBy(step: Step): readonly string[] {
  const stage = stageOf(step)
  return step.identity !== undefined && stage !== 'delete' && stage !== 'read' ? [step.identity] : []
}

function stageOf({ call: { interaction } }: Step): (typeof ORDER)[number] {
  switch (interaction.kind) {
    case 'delete':
    case 'delete-conditional':
      return 'delete'
    case 'create':
      return interaction.type === 'DocumentReference' ? 'document' : 'create'
    case 'update':
    case 'update-conditional':
    case 'patch':
    case 'patch-conditional':
      return interaction.type === 'DocumentReference' ? 'document' : 'write'
    default:
      return 'read'
  }
}
