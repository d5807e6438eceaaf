import { type ExactResource, fail, resourceBody, resourceBodyWithId } from '../../../fhir/index.ts'
import { findUpdateConflict } from '../../../smart/index.ts'
import { type Answer, currentVersion } from '../answer.ts'
import type { Call, Context, Handler } from '../call.ts'
import { documentProblem } from '../documents.ts'
import { isProblem, type Problem } from '../problem.ts'
import type { Stored } from '../repository/stored.ts'
import { accepts, judgeOf, reachesStored } from '../within.ts'
import { isDone } from './create.ts'
import { matchOf } from './match.ts'
import { written } from './written.ts'

/** Writes the next version, or the first one under the id that the caller chose (`u` covers it, contract 5.3). */
export const update: Handler<'update'> = (context, call) => {
  const { type, id } = call.interaction
  const resource = resourceBodyWithId(call.body, type, id)
  if (isProblem(resource)) return resource
  const { repository } = context
  return repository.transaction(() => replace(context, call, resource, id, repository.find(type, id)), isDone)
}

/** Updates the one match; with none, creates it (under the id in the body, if there is one). */
export const updateConditional: Handler<'update-conditional'> = (context, call) => {
  const { type, params } = call.interaction
  const resource = resourceBody(call.body, type)
  if (isProblem(resource)) return resource
  const { repository } = context
  return repository.transaction(() => {
    const match = matchOf(context, call, type, params)
    if (match && isProblem(match)) return match
    const id = match?.id ?? resource.id ?? repository.newId()
    if (match && resource.id !== undefined && resource.id !== match.id)
      return fail({
        problem: 'contradiction',
        text: `Cannot update ${type}: the match has another id than the body`,
      })
    return replace(context, call, resource, id, match ?? repository.find(type, id))
  }, isDone)
}

/** Both what is stored and what shall be stored must be within what the caller may update (contract 5.3). */
export function replace(
  context: Context,
  call: Call,
  resource: ExactResource,
  id: string,
  before: Stored | undefined,
): Answer | Problem {
  const judge = judgeOf(context, call)
  if (before && !reachesStored(judge, 'u', before)) return fail({ problem: 'out-of-reach' })
  // Under an id of ours it is judged as it came, without one.
  if (!accepts(judge, 'u', before ? { ...resource, id } : resource)) return fail({ problem: 'out-of-reach' })
  const current = before ? (currentVersion(before) ?? 'deleted') : 'absent'
  const place = { type: resource.resourceType, id }
  const conflict = findUpdateConflict(call.access, place, current, call.preconditions)
  if (conflict) return conflict
  const hidden = documentProblem(context, call, resource)
  if (hidden) return hidden
  const stored = context.repository.save(resource, id, before, 'PUT')
  if (isProblem(stored)) return stored
  return written(context, call, stored, before && !before.deleted ? 200 : 201)
}
