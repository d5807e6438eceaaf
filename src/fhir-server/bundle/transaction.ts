import { type Entry, fail } from '../../fhir/index.ts'
import type { Answer } from '../answer.ts'
import { bundleJson } from '../bundle-json.ts'
import type { Call, Context } from '../call.ts'
import { isProblem, type Problem } from '../problem.ts'
import { entryAnswer } from './entry-answer.ts'
import { entryCall } from './entry-call.ts'
import { identify, type Step } from './identify.ts'
import { linkReferences } from './references.ts'

// R4 http.html#trules: the order of the work, whatever the order of the entries.
const ORDER = ['delete', 'create', 'write', 'read'] as const

/** Does all entries or none: in one transaction, which a problem with any entry undoes. */
export function transaction(context: Context, bundle: Call, entries: readonly Entry[]): Answer | Problem {
  const calls: Call[] = []
  for (const [at, entry] of entries.entries()) {
    const call = entryCall(bundle, entry)
    if (isProblem(call)) return fail({ problem: 'entry-failed', entry: at, cause: call })
    calls.push(call)
  }
  return context.repository.transaction(
    () => run(context, calls, entries),
    result => !isProblem(result),
  )
}

function run(context: Context, calls: readonly Call[], entries: readonly Entry[]): Answer | Problem {
  const identified = identify(context, calls, entries)
  if (isProblem(identified)) return identified
  const steps = linkReferences(context, identified)
  if (isProblem(steps)) return steps
  const answers: Answer[] = new Array(steps.length)
  for (const stage of ORDER)
    for (const [at, step] of steps.entries()) {
      if (stageOf(step) !== stage) continue
      const outcome = step.answer ?? context.handle(context, step.call)
      if (isProblem(outcome)) return fail({ problem: 'entry-failed', entry: at, cause: outcome })
      answers[at] = outcome
    }
  return {
    status: 200,
    body: bundleJson({ type: 'transaction-response', entries: answers.map(entryAnswer) }),
  }
}

function stageOf({ call }: Step): (typeof ORDER)[number] {
  switch (call.interaction.kind) {
    case 'delete':
    case 'delete-conditional':
      return 'delete'
    case 'create':
      return 'create'
    case 'update':
    case 'update-conditional':
    case 'patch':
    case 'patch-conditional':
      return 'write'
    default:
      return 'read'
  }
}
