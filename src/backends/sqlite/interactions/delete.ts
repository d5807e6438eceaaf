import { fail, staleness } from '../../../fhir/index.ts'
import { type Answer, currentVersion } from '../answer.ts'
import type { Call, Context, Handler } from '../call.ts'
import { isProblem, type Problem } from '../problem.ts'
import type { Stored } from '../repository/stored.ts'
import { found, judgeOf, reachesStored } from '../within.ts'
import { isDone } from './create.ts'
import { matchOf } from './match.ts'

const NO_CONTENT: Answer = { status: 204 }

/** Deletes a resource; again, it changes nothing. */
export const remove: Handler<'delete'> = (context, call) => {
  const { type, id } = call.interaction
  const { repository } = context
  return repository.transaction(() => {
    const stored = found(judgeOf(context, call), 'd', type, id, repository.find(type, id))
    if (!isProblem(stored)) return removeStored(context, call, stored)
    // What the caller may know to be absent is as deleted as it can be (R4 http.html#delete).
    return stored.problem === 'absent' ? (staleness(undefined, call.preconditions) ?? NO_CONTENT) : stored
  }, isDone)
}

/** Deletes the one match, if there is one. */
export const removeConditional: Handler<'delete-conditional'> = (context, call) => {
  const { type, params } = call.interaction
  return context.repository.transaction(() => {
    const match = matchOf(context, call, type, params)
    if (!match) return NO_CONTENT
    if (isProblem(match)) return match
    return reachesStored(judgeOf(context, call), 'd', match)
      ? removeStored(context, call, match)
      : fail({ problem: 'out-of-reach' })
  }, isDone)
}

function removeStored({ repository }: Context, { preconditions }: Call, stored: Stored): Answer | Problem {
  const stale = staleness(currentVersion(stored), preconditions)
  if (stale) return stale
  if (!stored.deleted) repository.remove(stored)
  return { ...NO_CONTENT, deleted: `${stored.type}/${stored.id}` }
}
