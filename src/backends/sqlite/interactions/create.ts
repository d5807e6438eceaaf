import { type ExactResource, fail, resourceBody } from '../../../fhir/index.ts'
import type { Answer } from '../answer.ts'
import type { Call, Context, Handler } from '../call.ts'
import { documentProblem } from '../documents.ts'
import { isProblem, type Problem } from '../problem.ts'
import { accepts, judgeOf } from '../within.ts'
import { matchOf } from './match.ts'
import { written } from './written.ts'

/** Creates a resource under an id of ours; with If-None-Exist only where none matches. */
export const create: Handler<'create'> = (context, call) => {
  const { type, ifNoneExist } = call.interaction
  const id = call.newId ?? context.repository.newId()
  const resource = resourceBody(call.body, type)
  if (isProblem(resource)) return resource
  return context.repository.transaction(() => {
    if (!ifNoneExist) return createAs(context, call, resource, id)
    const match = matchOf(context, call, type, ifNoneExist)
    if (match && isProblem(match)) return match
    return match ? written(context, call, match, 200) : createAs(context, call, resource, id)
  }, isDone)
}

/** Writes a resource that is new under this id, if it is within what the caller may create. */
export function createAs(
  context: Context,
  call: Call,
  resource: ExactResource,
  id: string,
): Answer | Problem {
  const { id: _, ...content } = resource
  if (!accepts(judgeOf(context, call), 'c', content)) return fail({ problem: 'out-of-reach' })
  const hidden = documentProblem(context, call, resource)
  if (hidden) return hidden
  const stored = context.repository.save(resource, id, undefined)
  return isProblem(stored) ? stored : written(context, call, stored, 201)
}

/** A write is kept when it was done. */
export function isDone(result: Answer | Problem): boolean {
  return !isProblem(result)
}
