import { isFailure } from '../../core/index.ts'
import {
  applyPatch,
  describeStaleness,
  type ExactResource,
  type FhirProblem,
  failFor,
  parseExact,
  readResourceBodyWithId,
  toPlain,
  type Work,
} from '../../fhir/index.ts'
import { checkPatch, findUpdateConflict } from '../../smart/index.ts'
import { checkStored, failUnseen, findResource, lookUp, toCurrentVersion } from '../access/find-resource.ts'
import type { VersionedWrite } from '../backend.ts'
import type { Context } from '../context.ts'
import type { FhirRequest } from '../request.ts'
import type { Failure, FhirResponse } from '../response.ts'
import type { StoredVersion } from '../stored-version.ts'

/** The plan of a write request. */
export type Planned = PlannedWrite | PlannedResponse

/** A change, whose content is checked once all references in it are resolved. */
export interface PlannedWrite {
  readonly kind: 'write'
  readonly request: FhirRequest
  readonly permission: 'c' | 'u' | 'd'
  readonly write: VersionedWrite
  /** The failing precondition, for a caller who may make the change. */
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

export async function planUpdate(
  context: Context,
  request: FhirRequest,
  resource: ExactResource,
  id: string,
): Promise<Planned | Failure> {
  const type = resource.resourceType
  const found = await lookUp(context, request, { permission: 'u', type, id, tellsAbsence: true })
  if (isFailure(found)) return found
  if (found === 'outside') return failFor('outside-access')
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
    kind: 'write',
    request,
    permission: 'u',
    write: { kind: 'update', type, id, resource, before },
    conflict: findUpdateConflict(request.access, { type, id }, current, request.preconditions),
  }
}

export async function planPatch(
  context: Context,
  request: FhirRequest,
  type: string,
  id: string,
): Promise<Planned | Failure> {
  const found = await findResource(context, request, { permission: 'u', type, id })
  if (isFailure(found)) return found
  if (found.deleted) return failFor('gone', { type, id })
  const resource = await createPatched(context, request, found)
  return isFailure(resource) ? resource : planReplacement(request, resource, id, found)
}

/** The patched content. Decimals that the patch does not change keep all their digits. */
async function createPatched(
  context: Context,
  request: FhirRequest,
  version: StoredVersion,
): Promise<ExactResource | Failure> {
  const before = version.parse()
  if (isFailure(before)) return before
  if (version.stream) return failFor('patched-too-large', { type: version.type, id: version.id })
  const excess = request.work.count('patch')
  if (excess) return excess
  const patched = applyTo(version, request.body, request.work)
  const after = isFailure(patched) ? patched : toPlain(patched)
  const check = await checkStored(context, request, isFailure(after) ? [before] : [before, after])
  if (isFailure(check)) return check
  return checkPatch(request.body, before, after, (permission, it) => check.allows(permission, it)) ?? patched
}

function applyTo(
  { text = '', type, id }: StoredVersion,
  patch: unknown,
  work: Work,
): ExactResource | FhirProblem {
  const result = applyPatch(parseExact(text), patch, work)
  return isFailure(result) ? result : readResourceBodyWithId(result.value, type, id)
}

/** Deleting a resource again changes nothing, nor does deleting one that the caller may know to be absent (R4 http.html#delete). */
export async function planDelete(
  context: Context,
  request: FhirRequest,
  type: string,
  id: string,
): Promise<Planned | Failure> {
  const { preconditions } = request
  const target = { permission: 'd', type, id } as const
  const found = await lookUp(context, request, target)
  if (isFailure(found)) return found
  if (typeof found === 'object' && !found.deleted)
    return {
      kind: 'write',
      request,
      permission: 'd',
      write: { kind: 'delete', type, id, before: found },
      conflict: describeStaleness(toCurrentVersion(found), preconditions),
    }
  const hidden = typeof found === 'string' ? failUnseen(context, request, target) : undefined
  if (hidden && hidden.reason !== 'absent') return hidden
  const response = { status: 204, ...(!hidden && { deleted: `${type}/${id}` }) }
  return describeStaleness(undefined, preconditions) ?? { kind: 'response', request, response }
}
