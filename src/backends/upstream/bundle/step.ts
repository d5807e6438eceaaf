import {
  type ExactResource,
  fail,
  findOperation,
  isProblem,
  type Params,
  staleness,
} from '../../../fhir/index.ts'
import { failHidden } from '../../../smart/index.ts'
import type { Answer } from '../answer.ts'
import type { Call, Context, InteractionOf } from '../call.ts'
import { patched } from '../interactions/patch.ts'
import { bindingTo, conflictWith } from '../interactions/update.ts'
import { unchanged } from '../interactions/written.ts'
import { currentVersion, find, look } from '../judge/find.ts'
import { bodyOf, contentProblem } from '../judge/writable.ts'
import type { Problem } from '../problem.ts'
import { lookUpCondition, matchOf } from '../search/match.ts'
import { exactParams } from '../search/narrow.ts'
import { queryOf } from '../upstream/request-of.ts'
import { type Identities, linked, newIdentity } from './identities.ts'

/** What an entry of a transaction comes to, before anything is written. */
export type Step =
  /** Answered already, or after all is written. */
  | { readonly kind: 'answered'; readonly answer: Answer; readonly identity?: string }
  | { readonly kind: 'read'; readonly call: Call }
  /** To be sent. The content is judged when all identities are known. */
  | {
      readonly kind: 'write'
      readonly call: Call
      readonly permission: 'c' | 'u' | 'd'
      readonly identity: string
      readonly request: Readonly<Record<string, string>>
      readonly resource?: ExactResource
    }

const NO_CONTENT: Answer = { status: 204, headers: {} }

/** Looks up what an entry is about, and judges what is stored there. */
export async function stepOf(context: Context, call: Call): Promise<Step | Problem> {
  const { interaction } = call
  switch (interaction.kind) {
    case 'create':
      return createStep(context, call, interaction.type, interaction.ifNoneExist)
    case 'update':
      return updateStep(context, call, interaction.type, interaction.id)
    case 'update-conditional':
      return updateMatch(context, call, interaction)
    case 'patch':
      return patchStep(context, call, interaction.type, interaction.id)
    case 'delete':
      return deleteStep(context, call, interaction.type, interaction.id)
    case 'patch-conditional': {
      const id = await matchedId(context, call, interaction.type, interaction.params)
      if (id === undefined) return fail({ problem: 'no-match', type: interaction.type })
      return typeof id === 'object' ? id : patchStep(context, call, interaction.type, id)
    }
    case 'delete-conditional': {
      const id = await matchedId(context, call, interaction.type, interaction.params)
      if (id === undefined) return { kind: 'answered', answer: NO_CONTENT }
      return typeof id === 'object' ? id : deleteStep(context, call, interaction.type, id)
    }
    case 'operation':
      // It might write, and could not be undone with the rest.
      if (interaction.posted && findOperation(context.operations, interaction)?.needs.kind === 'all-data')
        return fail({ problem: 'unsupported-operation', name: interaction.name })
      return { kind: 'read', call }
    default:
      return { kind: 'read', call }
  }
}

async function matchedId(
  context: Context,
  call: Call,
  type: string,
  params: Params,
): Promise<string | Problem | undefined> {
  const match = await matchOf(context, call, type, params)
  return match && (isProblem(match) ? match : match.resource.id)
}

async function createStep(
  context: Context,
  call: Call,
  type: string,
  condition: Params | undefined,
): Promise<Step | Problem> {
  const resource = bodyOf(call, 'c', type)
  if (isProblem(resource)) return resource
  const found = condition && (await lookUpCondition(context, call, type, condition))
  if (found && isProblem(found)) return found
  const match = found?.match
  if (match) {
    const answer = await unchanged(context, call, match.resource, match.exact)
    return { kind: 'answered', answer, identity: `${type}/${match.resource.id}` }
  }
  const narrowing = found?.isTrusted && exactParams(type, call.access.filterFor(type, 's'))
  const ifNoneExist = narrowing ? queryOf([...(condition ?? []), ...narrowing], context.addresses) : undefined
  return newStep(call, 'c', type, resource, ifNoneExist)
}

function newStep(
  call: Call,
  permission: 'c' | 'u',
  type: string,
  resource: ExactResource,
  ifNoneExist?: string,
): Step {
  const { id: _, ...content } = resource
  return {
    ...{ kind: 'write', call, permission, identity: newIdentity(type) },
    request: { method: 'POST', url: type, ...(ifNoneExist !== undefined && { ifNoneExist }) },
    resource: { ...content, resourceType: type },
  }
}

async function updateMatch(
  context: Context,
  call: Call,
  { type, params }: InteractionOf<'update-conditional'>,
): Promise<Step | Problem> {
  const resource = bodyOf(call, 'u', type)
  if (isProblem(resource)) return resource
  const id = await matchedId(context, call, type, params)
  if (typeof id === 'object') return id
  if (id !== undefined && resource.id !== undefined && resource.id !== id)
    return fail({
      problem: 'contradiction',
      text: `Cannot update ${type}: the match has another id than the body`,
    })
  const named = id ?? resource.id
  if (named === undefined) return newStep(call, 'u', type, resource)
  return updateStep(context, { ...call, body: { ...resource, id: named } }, type, named)
}

async function updateStep(context: Context, call: Call, type: string, id: string): Promise<Step | Problem> {
  const resource = bodyOf(call, 'u', type, id)
  if (isProblem(resource)) return resource
  const before = await look(context, call, 'u', type, id)
  if (isProblem(before)) return before
  if (before.kind === 'outside') return fail({ problem: 'out-of-reach' })
  const living = before.kind === 'living' ? before : undefined
  const stale = conflictWith(call, type, id, before)
  if (stale) return stale
  const bound = bindingTo(living)
  if (!bound) return fail({ problem: 'no-version', type })
  return {
    ...{ kind: 'write', call, permission: 'u', identity: `${type}/${id}`, resource },
    request: { method: 'PUT', url: `${type}/${id}`, ...inEntry(bound) },
  }
}

async function patchStep(context: Context, call: Call, type: string, id: string): Promise<Step | Problem> {
  const found = await find(context, call, 'u', type, id)
  if (isProblem(found)) return found
  if (found.kind === 'deleted') return fail({ problem: 'gone', type, id })
  const stale = staleness(currentVersion(found), call.preconditions)
  if (stale) return stale
  const next = await patched(context, call, type, id)(found)
  if (isProblem(next)) return next
  const bound = bindingTo(found)
  if (!bound) return fail({ problem: 'no-version', type })
  return {
    ...{ kind: 'write', call, permission: 'u', identity: `${type}/${id}`, resource: next },
    request: { method: 'PUT', url: `${type}/${id}`, ...inEntry(bound) },
  }
}

async function deleteStep(context: Context, call: Call, type: string, id: string): Promise<Step | Problem> {
  const before = await look(context, call, 'd', type, id)
  if (isProblem(before)) return before
  if (before.kind === 'deleted') return { kind: 'answered', answer: NO_CONTENT }
  if (before.kind !== 'living') {
    const problem = failHidden(call.access, 'd', type, id)
    return problem.problem === 'absent' ? { kind: 'answered', answer: NO_CONTENT } : problem
  }
  const bound = bindingTo(before) ?? {}
  return (
    staleness(currentVersion(before), call.preconditions) ?? {
      ...{ kind: 'write', call, permission: 'd', identity: `${type}/${id}` },
      request: { method: 'DELETE', url: `${type}/${id}`, ...inEntry(bound) },
    }
  )
}

function inEntry(bound: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const ifMatch = bound['if-match']
  const ifNoneMatch = bound['if-none-match']
  return { ...(ifMatch !== undefined && { ifMatch }), ...(ifNoneMatch !== undefined && { ifNoneMatch }) }
}

/** Judges what an entry writes, references to other entries resolved. */
export async function stepProblem(
  context: Context,
  step: Step,
  identities: Identities,
): Promise<Problem | undefined> {
  if (step.kind !== 'write' || !step.resource || step.permission === 'd') return undefined
  const content = linked(step.resource, identities) as ExactResource
  return contentProblem(context, step.call, step.permission, content)
}
