import { type ExactResource, fail, isProblem } from '../../../fhir/index.ts'
import { findUpdateConflict } from '../../../smart/index.ts'
import type { Answer } from '../answer.ts'
import type { Call, Context, Handler } from '../call.ts'
import { currentVersion, type Deleted, type Living, look, type Unseen } from '../judge/find.ts'
import { bodyOf, contentProblem } from '../judge/writable.ts'
import type { Problem } from '../problem.ts'
import { matchOf } from '../search/match.ts'
import { sending } from '../upstream/request-of.ts'
import { createNew } from './create.ts'
import { isPassed, passWrite } from './pass-write.ts'
import { written } from './written.ts'

/** Writes the next version, or the first one under the id that the caller chose (`u` covers it, contract 5.3). */
export const update: Handler<'update'> = async (context, call) => {
  const { type, id } = call.interaction
  if (isPassed(context, call, 'u')) return passWrite(context, call)
  const resource = bodyOf(call, 'u', type, id)
  if (isProblem(resource)) return resource
  return replace(context, call, type, id, () => resource)
}

/** Updates the one match; with none, creates it (under the id in the body, if there is one). */
export const updateConditional: Handler<'update-conditional'> = async (context, call) => {
  const { type, params } = call.interaction
  if (isPassed(context, call, 'u')) return passWrite(context, call)
  const resource = bodyOf(call, 'u', type)
  if (isProblem(resource)) return resource
  const match = await matchOf(context, call, type, params)
  if (match && isProblem(match)) return match
  if (match && resource.id !== undefined && resource.id !== match.resource.id)
    return fail({
      problem: 'contradiction',
      text: `Cannot update ${type}: the match has another id than the body`,
    })
  const id = match?.resource.id ?? resource.id
  if (id === undefined) return createNew(context, call, type, 'u')
  return replace(context, call, type, id, () => ({ ...resource, id }))
}

/** What shall be stored, made from what is. */
export type NextVersion = (before: Living | undefined) => Next | Promise<Next>
export type Next = ExactResource | Problem

const ATTEMPTS = 3

/**
 * Both what is stored and what shall be stored must be within what the caller may update (contract 5.3). The write is
 * bound to the version that was judged: when somebody else was faster, it is judged anew or not done.
 */
export async function replace(
  context: Context,
  call: Call,
  type: string,
  id: string,
  next: NextVersion,
): Promise<Answer | Problem> {
  for (let attempt = 1; ; attempt++) {
    const before = await look(context, call, 'u', type, id)
    if (isProblem(before)) return before
    if (before.kind === 'outside') return fail({ problem: 'out-of-reach' })
    const living = before.kind === 'living' ? before : undefined
    const after = await next(living)
    if (isProblem(after)) return after
    const problem = (await contentProblem(context, call, 'u', after)) ?? conflictWith(call, type, id, before)
    if (problem) return problem
    const bound = bindingTo(living)
    if (!bound) return fail({ problem: 'no-version', type })
    const request = sending(call, 'PUT', `/${type}/${id}`, after, context.addresses, bound)
    const answer = await context.upstream.ask(request)
    const wasFaster = !isProblem(answer) && (answer.status === 412 || answer.status === 409)
    if (!wasFaster || call.preconditions.ifMatch !== undefined || attempt === ATTEMPTS) {
      const said = await written(context, call, answer)
      return isProblem(said) ? said : { ...said, before: living?.resource }
    }
  }
}

/** Why an update must not go on from what is stored. */
export function conflictWith(
  { access, preconditions }: Call,
  type: string,
  id: string,
  before: Living | Deleted | Unseen,
): Problem | undefined {
  const unseen = before.kind === 'deleted' ? 'deleted' : 'absent'
  const current = before.kind === 'living' ? currentVersion(before) : unseen
  return findUpdateConflict(access, { type, id }, current, preconditions)
}

/** The precondition under which what was judged is still what is stored. */
export function bindingTo(living: Living | undefined): Readonly<Record<string, string>> | undefined {
  if (!living) return { 'if-none-match': '*' }
  return living.etag === undefined ? undefined : { 'if-match': living.etag }
}
