import {
  type ExactResource,
  fail,
  isProblem,
  plainOf,
  resourceBody,
  resourceBodyWithId,
} from '../../../fhir/index.ts'
import type { Permission } from '../../../smart/index.ts'
import type { Call, Context } from '../call.ts'
import type { Problem } from '../problem.ts'
import { documentProblem } from './documents.ts'
import { hidesSearch } from './hidden-searches.ts'
import { checkNewContent } from './judge.ts'

/** Why content must not be written with a permission, if so. */
export async function contentProblem(
  context: Context,
  call: Call,
  permission: Permission,
  content: ExactResource,
): Promise<Problem | undefined> {
  const { access } = call
  const resource = plainOf(content)
  if (hidesSearch(resource, access, context.baseUrl)) return fail({ problem: 'out-of-reach' })
  const hidden = await documentProblem(context, call, resource)
  if (hidden) return hidden
  if (access.filterFor(resource.resourceType, permission) === 'everything') return undefined
  const judge = await checkNewContent(context, call, resource)
  if (isProblem(judge)) return judge
  return judge.allowsWrite(permission, resource) ? undefined : fail({ problem: 'out-of-reach' })
}

/**
 * The body of a write. What is judged must be valid, or the judgement may be of something else than what the upstream
 * reads; what is not limited the upstream validates by itself.
 */
export function bodyOf(
  { body, access }: Call,
  permission: Permission,
  type: string,
  id?: string,
): ExactResource | Problem {
  const resource = id === undefined ? resourceBody(body, type) : resourceBodyWithId(body, type, id)
  const isJudged = access.filterFor(type, permission) !== 'everything'
  if (isProblem(resource) && resource.problem === 'invalid-resource' && !isJudged)
    return body as ExactResource
  return resource
}
