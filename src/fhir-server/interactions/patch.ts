import {
  applyPatch,
  type ExactResource,
  fail,
  parseExact,
  readsStored,
  resourceBodyWithId,
} from '../../fhir/index.ts'
import type { Answer } from '../answer.ts'
import type { Call, Context, Handler } from '../call.ts'
import { isProblem, type Problem } from '../problem.ts'
import type { Stored } from '../repository/stored.ts'
import { found, judgeOf, reaches, reachesStored } from '../within.ts'
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
    if (!match) return fail({ problem: 'no-match', type })
    return isProblem(match) ? match : patchStored(context, call, match)
  }, isDone)
}

function patchStored(context: Context, call: Call, stored: Stored): Answer | Problem {
  if (stored.deleted) return fail({ problem: 'gone', type: stored.type, id: stored.id })
  const judge = judgeOf(context, call)
  const readable = reachesStored(judge, 'r', stored)
  if (!readable && readsStored(call.body)) return fail({ problem: 'out-of-reach' })
  const resource = resultOf(stored, call.body)
  if (isProblem(resource)) return readable || resource.problem === 'malformed-body' ? resource : UNUSABLE
  // What may not be read stays so: else a patch of the one element that a filter looks at would show all others.
  if (!readable && (reaches(judge, 'r', resource) || reaches(judge, 's', resource)))
    return fail({ problem: 'out-of-reach' })
  return replace(context, call, resource, stored.id, stored)
}

/** What is said to who may not read: why a patch fails tells what is stored. */
const UNUSABLE: Problem = fail({ problem: 'unusable-patch', text: 'Cannot apply patch' })

function resultOf(stored: Stored, patch: unknown): ExactResource | Problem {
  const patched = applyPatch(parseExact(stored.content), patch)
  if ('failure' in patched) {
    const text = `Cannot apply patch: ${patched.failure}`
    return patched.malformed
      ? fail({ problem: 'malformed-body', text })
      : fail({ problem: 'unusable-patch', text })
  }
  return resourceBodyWithId(patched.value, stored.type, stored.id)
}
