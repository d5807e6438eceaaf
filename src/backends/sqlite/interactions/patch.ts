import {
  applyPatch,
  type ExactResource,
  fail,
  parseExact,
  plainOf,
  resourceBodyWithId,
} from '../../../fhir/index.ts'
import { checkPatch } from '../../../smart/index.ts'
import type { Answer } from '../answer.ts'
import type { Call, Context, Handler } from '../call.ts'
import { isProblem, type Problem } from '../problem.ts'
import { resourceOf, type Stored } from '../repository/stored.ts'
import { found, judgeOf, reaches } from '../within.ts'
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
  const resource = resultOf(stored, call.body)
  const result = isProblem(resource) ? resource : plainOf(resource)
  const problem = checkPatch(call.body, resourceOf(stored), result, (permission, content) =>
    reaches(judge, permission, content),
  )
  if (problem) return problem
  return isProblem(resource) ? resource : replace(context, call, resource, stored.id, stored)
}

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
