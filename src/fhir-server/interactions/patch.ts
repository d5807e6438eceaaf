import { applyPatch, isRecord, resourceBodyWithId } from '../../fhir/index.ts'
import type { Answer } from '../answer.ts'
import type { Call, Context, Handler } from '../call.ts'
import { isProblem, type Problem } from '../problem.ts'
import { resourceOf, type Stored } from '../repository/stored.ts'
import { found, judgeOf, reachesStored } from '../within.ts'
import { isDone } from './create.ts'
import { matchOf } from './match.ts'
import { replace } from './update.ts'

/** Applies a JSON Patch; its result is judged and validated like an update (issue: old and new content). */
export const patch: Handler<'patch'> = (context, call) => {
  const { type, id } = call.interaction
  const { repository } = context
  return repository.transaction(() => {
    const stored = found(judgeOf(context, call), 'u', type, id, repository.find(type, id))
    return isProblem(stored) ? stored : patchStored(context, call, stored)
  }, isDone)
}

/** Patches the one match. */
export const patchConditional: Handler<'patch-conditional'> = (context, call) => {
  const { type, params } = call.interaction
  return context.repository.transaction(() => {
    const match = matchOf(context, call, type, params)
    if (!match) return { problem: 'no-match', type }
    return isProblem(match) ? match : patchStored(context, call, match)
  }, isDone)
}

function patchStored(context: Context, call: Call, stored: Stored): Answer | Problem {
  if (stored.deleted) return { problem: 'gone', type: stored.type, id: stored.id }
  const readable = reachesStored(judgeOf(context, call), 'r', stored)
  if (!readable && asks(call.body)) return { problem: 'out-of-reach' }
  const patched = applyPatch(resourceOf(stored), call.body)
  if ('failure' in patched) {
    const text =
      patched.malformed || readable ? `Cannot apply patch: ${patched.failure}` : 'Cannot apply patch'
    return patched.malformed ? { problem: 'malformed-body', text } : { problem: 'unusable-patch', text }
  }
  const resource = resourceBodyWithId(patched.value, stored.type, stored.id)
  return isProblem(resource) ? resource : replace(context, call, resource, stored.id, stored)
}

/** Whether a patch asks for what is stored, which is reading: a `test` that fails tells that it is something else. */
function asks(patch: unknown): boolean {
  return Array.isArray(patch) && patch.some(step => isRecord(step) && step.op === 'test')
}
