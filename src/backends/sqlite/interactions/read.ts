import { contentIn, fail, isUnchanged, type Params, shaped, shapeOf } from '../../../fhir/index.ts'
import { type Answer, currentVersion, versionOf } from '../answer.ts'
import type { Call, Handler } from '../call.ts'
import { isConveyed } from '../documents.ts'
import { isProblem, type Problem } from '../problem.ts'
import type { Stored } from '../repository/stored.ts'
import { found, judgeOf } from '../within.ts'

export const read: Handler<'read'> = (context, call) => {
  const { type, id, params } = call.interaction
  const current = context.repository.find(type, id)
  const stored = found(judgeOf(context, call), 'r', type, id, current)
  if (!isProblem(stored)) return shown(stored, params, call)
  return current && isConveyed(context, call, current) ? shown(current, params, call) : stored
}

/**
 * The resource may have been another patient's at that version, and may be another patient's now: both must be within
 * reach, unless the settings say that the version alone decides.
 */
export const vread: Handler<'vread'> = (context, call) => {
  const { type, id, version, params } = call.interaction
  const { repository } = context
  const judge = judgeOf(context, call)
  const current = found(judge, 'r', type, id, repository.find(type, id))
  if (isProblem(current) && context.versionAccess === 'current') return current
  const stored = found(judge, 'r', type, id, repository.findVersion(type, id, version))
  return isProblem(stored) ? stored : shown(stored, params, call)
}

function shown(stored: Stored, params: Params, { preconditions, preferences }: Call): Answer | Problem {
  const current = currentVersion(stored)
  if (!current) return fail({ problem: 'gone', type: stored.type, id: stored.id })
  if (isUnchanged(current, preconditions)) return { status: 304, version: versionOf(stored) }
  const body = params.length === 0 ? stored.content : shaped(stored.content, shapeOf(params))
  const answer = { status: 200, version: versionOf(stored), body }
  return preferences.content ? { ...answer, content: contentIn(body) } : answer
}
