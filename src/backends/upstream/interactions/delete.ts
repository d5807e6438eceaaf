import { isProblem, staleness } from '../../../fhir/index.ts'
import { failHidden } from '../../../smart/index.ts'
import type { Answer } from '../answer.ts'
import type { Call, Context, Handler } from '../call.ts'
import { currentVersion, look } from '../judge/find.ts'
import type { Problem } from '../problem.ts'
import { matchOf } from '../search/match.ts'
import { declined } from '../upstream/declined.ts'
import { headersFor } from '../upstream/request-of.ts'
import { isPassed, passWrite } from './pass-write.ts'

const NO_CONTENT: Answer = { status: 204, headers: {} }

/** Deletes a resource; again, it changes nothing. */
export const remove: Handler<'delete'> = async (context, call) => {
  const { type, id } = call.interaction
  return isPassed(context, call, 'd') ? passWrite(context, call) : removeOne(context, call, type, id)
}

/** Deletes the one match, if there is one. */
export const removeConditional: Handler<'delete-conditional'> = async (context, call) => {
  const { type, params } = call.interaction
  const match = await matchOf(context, call, type, params)
  if (!match) return NO_CONTENT
  return isProblem(match) ? match : removeOne(context, call, type, match.resource.id ?? '')
}

async function removeOne(context: Context, call: Call, type: string, id: string): Promise<Answer | Problem> {
  const before = await look(context, call, 'd', type, id)
  if (isProblem(before)) return before
  if (before.kind === 'deleted') return staleness(undefined, call.preconditions) ?? NO_CONTENT
  if (before.kind !== 'living') {
    const problem = failHidden(call.access, 'd', type, id)
    // What the caller may know to be absent is as deleted as it can be (R4 http.html#delete).
    return problem.problem === 'absent' ? (staleness(undefined, call.preconditions) ?? NO_CONTENT) : problem
  }
  const stale = staleness(currentVersion(before), call.preconditions)
  if (stale) return stale
  const answer = await context.upstream.ask({
    method: 'DELETE',
    path: `/${type}/${id}`,
    headers: { ...headersFor(call), ...(before.etag !== undefined && { 'if-match': before.etag }) },
  })
  if (isProblem(answer)) return answer
  return answer.status < 300 ? { ...NO_CONTENT, before: before.resource } : declined(answer, call.access)
}
