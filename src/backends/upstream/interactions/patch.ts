import {
  applyPatch,
  type ExactResource,
  type FhirProblem,
  fail,
  isProblem,
  parseExact,
  plainOf,
  type Resource,
  resourceBodyWithId,
} from '../../../fhir/index.ts'
import { checkPatch, type Permission } from '../../../smart/index.ts'
import type { Answer } from '../answer.ts'
import type { Call, Context, Handler } from '../call.ts'
import { find, type Living } from '../judge/find.ts'
import { checkContent } from '../judge/judge.ts'
import type { Problem } from '../problem.ts'
import { matchOf } from '../search/match.ts'
import { isPassed, passWrite } from './pass-write.ts'
import { type NextVersion, replace } from './update.ts'

/** Applies a JSON Patch here, so that its result can be judged, and sends that in the place of the patch. */
export const patch: Handler<'patch'> = async (context, call) => {
  const { type, id } = call.interaction
  if (isPassed(context, call, 'u')) return passWrite(context, call)
  return patchOne(context, call, type, id)
}

/** Patches the one match. */
export const patchConditional: Handler<'patch-conditional'> = async (context, call) => {
  const { type, params } = call.interaction
  if (isPassed(context, call, 'u')) return passWrite(context, call)
  const match = await matchOf(context, call, type, params)
  if (!match) return fail({ problem: 'no-match', type })
  return isProblem(match) ? match : patchOne(context, call, type, match.resource.id ?? '')
}

async function patchOne(context: Context, call: Call, type: string, id: string): Promise<Answer | Problem> {
  const found = await find(context, call, 'u', type, id)
  if (isProblem(found)) return found
  if (found.kind === 'deleted') return fail({ problem: 'gone', type, id })
  return replace(context, call, type, id, patched(context, call, type, id))
}

/**
 * The version after the patch, with all digits of decimals that it does not touch. What may not be read is not told by
 * the patch either, and stays so (docs/decisions/0132-side-channels.md).
 */
export function patched(context: Context, call: Call, type: string, id: string): NextVersion {
  return async (before: Living | undefined) => {
    if (!before) return fail({ problem: 'out-of-reach' })
    const next = resultOf(before, call.body, type, id)
    const after = isProblem(next) ? undefined : plainOf(next)
    const judge = await checkContent(context, call, after ? [before.resource, after] : [before.resource])
    if (isProblem(judge)) return judge
    const allows = (permission: Permission, content: Resource) => judge.allows(permission, content)
    return checkPatch(call.body, before.resource, isProblem(next) ? next : plainOf(next), allows) ?? next
  }
}

function resultOf(before: Living, patch: unknown, type: string, id: string): ExactResource | FhirProblem {
  const result = applyPatch(parseExact(before.text), patch)
  if ('failure' in result) {
    const text = `Cannot apply patch: ${result.failure}`
    return result.malformed
      ? fail({ problem: 'malformed-body', text })
      : fail({ problem: 'unusable-patch', text })
  }
  return resourceBodyWithId(result.value, type, id)
}
