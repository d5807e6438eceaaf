import { isProblem, type Params } from '../../../fhir/index.ts'
import type { Answer } from '../answer.ts'
import type { Call, Context, Handler } from '../call.ts'
import { bodyOf, contentProblem } from '../judge/writable.ts'
import type { Problem } from '../problem.ts'
import { lookUpCondition } from '../search/match.ts'
import { exactParams } from '../search/narrow.ts'
import { queryOf, sending } from '../upstream/request-of.ts'
import { isPassed, passWrite } from './pass-write.ts'
import { unchanged, written } from './written.ts'

/** Creates a resource; with If-None-Exist only where none matches that the caller reaches. */
export const create: Handler<'create'> = async (context, call) => {
  const { type, ifNoneExist } = call.interaction
  if (isPassed(context, call, 'c')) return passWrite(context, call)
  if (!ifNoneExist) return createNew(context, call, type, 'c')
  const found = await lookUpCondition(context, call, type, ifNoneExist)
  if (isProblem(found)) return found
  const { match, isTrusted } = found
  if (match) return unchanged(context, call, match.resource, match.exact)
  return createNew(context, call, type, 'c', isTrusted ? ifNoneExist : undefined)
}

/** Writes content under an id of the upstream's. */
export async function createNew(
  context: Context,
  call: Call,
  type: string,
  permission: 'c' | 'u',
  condition?: Params,
): Promise<Answer | Problem> {
  const resource = bodyOf(call, permission, type)
  if (isProblem(resource)) return resource
  const { id: _, ...content } = resource
  const problem = await contentProblem(context, call, permission, { ...content, resourceType: type })
  if (problem) return problem
  const header = condition && conditionHeader(context, call, type, condition)
  return written(
    context,
    call,
    await context.upstream.ask(sending(call, 'POST', `/${type}`, content, context.addresses, header)),
  )
}

/** So that two at the same time do not both create it; as far as parameters say what the caller reaches. */
function conditionHeader({ addresses }: Context, { access }: Call, type: string, condition: Params) {
  const narrowing = exactParams(type, access.filterFor(type, 's'))
  return narrowing ? { 'if-none-exist': queryOf([...condition, ...narrowing], addresses) } : {}
}
