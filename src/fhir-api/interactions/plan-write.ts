import {
  applyPatch,
  describeStaleness,
  type EntryInteraction,
  type ExactResource,
  type FhirProblem,
  fail,
  isProblem,
  isWriting,
  type Params,
  parseExact,
  readResourceBody,
  readResourceBodyWithId,
  toPlain,
} from '../../fhir/index.ts'
import { checkPatch, failHidden, findUpdateConflict } from '../../smart/index.ts'
import { checkStored, findResource, lookUp, toCurrentVersion } from '../access/find-resource.ts'
import type { ConditionMatch, VersionedWrite } from '../backend-writes.ts'
import type { Context } from '../context.ts'
import { type Failure, isFailure } from '../failure.ts'
import type { FhirRequest } from '../request.ts'
import type { FhirResponse } from '../response.ts'
import type { StoredVersion } from '../stored-version.ts'
import { respondUnchanged } from './write-response.ts'

/** What a request to write comes to, before anything is written. */
export type Planned = PlannedWrite | PlannedResponse

/** A change. Its content is checked when all references in it are known. */
export interface PlannedWrite {
  readonly kind: 'write'
  readonly request: FhirRequest
  readonly permission: 'c' | 'u' | 'd'
  readonly write: VersionedWrite
  /** The precondition that fails, of a caller who may make the change. */
  readonly conflict?: Failure | undefined
}

/** There is nothing to change. */
export interface PlannedResponse {
  readonly kind: 'response'
  readonly request: FhirRequest
  readonly response: FhirResponse
  /** The resource that exists already. */
  readonly match?: StoredVersion
}

export type WriteInteraction = Extract<
  EntryInteraction,
  {
    readonly kind:
      | 'create'
      | 'update'
      | 'update-conditional'
      | 'patch'
      | 'patch-conditional'
      | 'delete'
      | 'delete-conditional'
  }
>

export function isWriteRequest(request: FhirRequest): request is FhirRequest<WriteInteraction> {
  return isWriting(request.interaction) && request.interaction.kind !== 'bundle'
}

/** Finds the resource that a write is about and checks whether the caller may change what is stored. */
export async function planWrite(
  context: Context,
  request: FhirRequest<WriteInteraction>,
): Promise<Planned | Failure> {
  const { interaction } = request
  switch (interaction.kind) {
    case 'create':
      return planCreate(context, request, interaction.type, interaction.ifNoneExist)
    case 'update': {
      const { type, id } = interaction
      const resource = readResource(context.session, request, 'u', type, id)
      return isFailure(resource) ? resource : planUpdate(context, request, resource, id)
    }
    case 'update-conditional':
      return planConditionalUpdate(context, request, interaction.type, interaction.params)
    case 'patch':
      return planPatch(context, request, interaction.type, interaction.id)
    case 'patch-conditional': {
      const { type, params } = interaction
      const match = await findMatch(context, request, type, params)
      if (!match) return fail({ problem: 'no-match', type })
      return isFailure(match) ? match : planPatch(context, request, type, match.id)
    }
    case 'delete':
      return planDelete(context, request, interaction.type, interaction.id)
    case 'delete-conditional': {
      const { type, params } = interaction
      const match = await findMatch(context, request, type, params)
      if (!match) return { kind: 'response', request, response: { status: 204 } }
      return isFailure(match) ? match : planDelete(context, request, type, match.id)
    }
  }
}

/** The one resource that a condition finds. It is a search within the caller's access. */
export async function findMatch(
  context: Context,
  request: FhirRequest,
  type: string,
  params: Params,
): Promise<StoredVersion | Failure | undefined> {
  const found = await lookUpCondition(context, request, type, params)
  return isFailure(found) ? found : found.match
}

function lookUpCondition(
  { session, reads }: Context,
  request: FhirRequest,
  type: string,
  params: Params,
): Promise<ConditionMatch | Failure> {
  const find = async () => session.findMatch(request, type, params)
  return reads ? reads.spend(find) : find()
}

async function planCreate(
  context: Context,
  request: FhirRequest,
  type: string,
  condition: Params | undefined,
): Promise<Planned | Failure> {
  const found = condition && (await lookUpCondition(context, request, type, condition))
  if (found && isFailure(found)) return found
  const resource = readResource(context.session, request, 'c', type)
  if (isFailure(resource)) return resource
  const match = found?.match
  if (!match) return planNew(context, request, 'c', resource, found?.ifNoneExist)
  return { kind: 'response', request, response: await respondUnchanged(context, request, match), match }
}

/** Content under an id that the server chooses. It is checked without one. */
function planNew(
  { session }: Context,
  request: FhirRequest,
  permission: 'c' | 'u',
  body: ExactResource,
  ifNoneExist?: Params,
): PlannedWrite {
  const { id: _, ...content } = body
  const resource = { ...content, resourceType: body.resourceType }
  const type = body.resourceType
  const id = session.local?.newId()
  return permission === 'u' && id !== undefined
    ? { kind: 'write', request, permission, write: { kind: 'update', type, id, resource, before: undefined } }
    : {
        ...{ kind: 'write', request, permission },
        write: {
          ...{ kind: 'create', type, id, resource, ifNoneExist },
          ...(permission === 'u' && { mustBeNew: true }),
        },
      }
}

/** Updates the one match. Without one, creates the resource, under the id in the body if there is one. */
async function planConditionalUpdate(
  context: Context,
  request: FhirRequest,
  type: string,
  params: Params,
): Promise<Planned | Failure> {
  const resource = readResource(context.session, request, 'u', type)
  if (isFailure(resource)) return resource
  const found = await lookUpCondition(context, request, type, params)
  if (isFailure(found)) return found
  const { match, ifNoneExist } = found
  if (match && resource.id !== undefined && resource.id !== match.id)
    return fail({
      problem: 'contradiction',
      text: `Cannot update ${type}: the match has another id than the body`,
    })
  const id = match?.id ?? resource.id
  if (id === undefined) return planNew(context, request, 'u', resource, ifNoneExist)
  const planned = await planUpdate(context, request, { ...resource, id }, id)
  return match && createsResource(planned) ? MATCH_DELETED : planned
}

// Somebody else may have created another match by now: to bring this one back would make two.
const MATCH_DELETED = fail({
  problem: 'stale',
  text: 'Cannot update: the match was deleted at the same time. Send the request again',
})

function createsResource(planned: Planned | Failure): boolean {
  if (isFailure(planned) || planned.kind !== 'write' || planned.write.kind === 'delete') return false
  return planned.write.kind === 'create' || !planned.write.before || planned.write.before.deleted
}

async function planUpdate(
  context: Context,
  request: FhirRequest,
  resource: ExactResource,
  id: string,
): Promise<Planned | Failure> {
  const type = resource.resourceType
  const found = await lookUp(context, request, 'u', type, id)
  if (isFailure(found)) return found
  if (found === 'outside') return fail({ problem: 'out-of-reach' })
  return planReplacement(request, resource, id, found === 'absent' ? undefined : found)
}

function planReplacement(
  request: FhirRequest,
  resource: ExactResource,
  id: string,
  before: StoredVersion | undefined,
): PlannedWrite {
  const type = resource.resourceType
  const current = !before ? 'absent' : before.deleted ? 'deleted' : toCurrentVersion(before)
  return {
    ...{ kind: 'write', request, permission: 'u' },
    write: { kind: 'update', type, id, resource, before },
    conflict: findUpdateConflict(request.access, { type, id }, current, request.preconditions),
  }
}

async function planPatch(
  context: Context,
  request: FhirRequest,
  type: string,
  id: string,
): Promise<Planned | Failure> {
  const found = await findResource(context, request, 'u', type, id)
  if (isFailure(found)) return found
  if (found.deleted) return fail({ problem: 'gone', type, id })
  const resource = await patchStored(context, request, found)
  return isFailure(resource) ? resource : planReplacement(request, resource, id, found)
}

/** The version after the patch. Decimals that the patch does not change keep all their digits. */
async function patchStored(
  context: Context,
  request: FhirRequest,
  version: StoredVersion,
): Promise<ExactResource | Failure> {
  const before = version.parse()
  if (isFailure(before)) return before
  const patched = applyTo(version, request.body)
  const after = isProblem(patched) ? patched : toPlain(patched)
  const check = await checkStored(context, request, isProblem(after) ? [before] : [before, after])
  if (isFailure(check)) return check
  return checkPatch(request.body, before, after, (permission, it) => check.allows(permission, it)) ?? patched
}

function applyTo({ text = '', type, id }: StoredVersion, patch: unknown): ExactResource | FhirProblem {
  const result = applyPatch(parseExact(text), patch)
  if (!('failure' in result)) return readResourceBodyWithId(result.value, type, id)
  const explanation = `Cannot apply patch: ${result.failure}`
  return result.malformed
    ? fail({ problem: 'malformed-body', text: explanation })
    : fail({ problem: 'unusable-patch', text: explanation })
}

/** Deleting a resource again changes nothing, nor does deleting one that the caller may know to be absent (R4 http.html#delete). */
async function planDelete(
  context: Context,
  request: FhirRequest,
  type: string,
  id: string,
): Promise<Planned | Failure> {
  const { access, preconditions } = request
  const found = await lookUp(context, request, 'd', type, id)
  if (isFailure(found)) return found
  if (typeof found === 'object' && !found.deleted)
    return {
      ...{ kind: 'write', request, permission: 'd' },
      write: { kind: 'delete', type, id, before: found },
      conflict: describeStaleness(toCurrentVersion(found), preconditions),
    }
  const hidden = typeof found === 'string' ? failHidden(access, 'd', type, id) : undefined
  if (hidden && hidden.problem !== 'absent') return hidden
  const response = { status: 204, ...(!hidden && { deleted: `${type}/${id}` }) }
  return describeStaleness(undefined, preconditions) ?? { kind: 'response', request, response }
}

/**
 * The body of a write. Content that is checked must be valid, or the check may be of something else than what the
 * backend reads. A remote backend validates content that is not checked.
 */
export function readResource(
  { local }: Pick<Context['session'], 'local'>,
  { body, access }: Pick<FhirRequest, 'body' | 'access'>,
  permission: 'c' | 'u',
  type: string,
  id?: string,
): ExactResource | Failure {
  const resource = id === undefined ? readResourceBody(body, type) : readResourceBodyWithId(body, type, id)
  const isChecked = local !== undefined || access.filterFor(type, permission) !== 'everything'
  if (isFailure(resource) && resource.problem === 'invalid-resource' && !isChecked)
    return body as ExactResource
  return resource
}
