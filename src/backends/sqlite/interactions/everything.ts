import { type EverythingType, everythingProblem, fail } from '../../../fhir/index.ts'
import { addPostedParams, findNamedTypes, getPath, respondWithPage } from '../../../fhir-api/index.ts'
import { type Answer, toAnswer } from '../answer.ts'
import type { Call, Context } from '../call.ts'
import { isProblem, type Problem } from '../problem.ts'
import { findEverything } from '../search/find-everything.ts'
import { turnPage } from '../search/turn-page.ts'
import { found, judgeOf } from '../within.ts'
import type { Operation } from './operation.ts'

/** `$everything` as an entry of a Bundle. */
export function everythingOf(type: EverythingType) {
  return (context: Context, begun: Call<Operation>): Answer | Problem => {
    const posted = addPostedParams(begun)
    if (isProblem(posted)) return posted
    const path = getPath(posted.interaction)
    const turned = turnPage(context, posted, path)
    if (isProblem(turned)) return turned
    const { call, after } = turned
    const { id = '', params } = call.interaction
    const stored = found(judgeOf(context, call), 'r', type, id, context.repository.find(type, id))
    if (isProblem(stored)) return stored
    if (stored.deleted) return fail({ problem: 'gone', type, id })
    const problem = everythingProblem(type, params)
    if (problem) return problem
    const types = findNamedTypes(params)
    if (isProblem(types)) return types
    const page = findEverything(context, call, { type, id, types }, after)
    return isProblem(page) ? page : toAnswer(respondWithPage(context, call, path, page))
  }
}
