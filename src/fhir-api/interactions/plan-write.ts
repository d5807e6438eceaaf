import { isFailure } from '../../core/index.ts'
import {
  type ExactResource,
  failFor,
  isWriting,
  type Params,
  readResourceBody,
  readResourceBodyWithId,
  runInTurns,
  validateAhead,
  type WriteInteraction,
} from '../../fhir/index.ts'
import type { ConditionMatch } from '../backend.ts'
import type { Context } from '../context.ts'
import type { FhirRequest } from '../request.ts'
import type { Failure } from '../response.ts'
import type { StoredVersion } from '../stored-version.ts'
import { type Planned, type PlannedWrite, planDelete, planPatch, planUpdate } from './plan-change.ts'
import { respondUnchanged } from './write-response.ts'

export function isWriteRequest(request: FhirRequest): request is FhirRequest<WriteInteraction> {
  return isWriting(request.interaction) && request.interaction.kind !== 'bundle'
}

/** Finds the resource of a write and checks whether the caller may change it. */
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
      if (!match) return failFor('no-match', { type })
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

/** The one match of a condition, which is a search within the caller's access. */
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
  { session }: Context,
  request: FhirRequest,
  type: string,
  params: Params,
): ConditionMatch | Failure | Promise<ConditionMatch | Failure> {
  return request.work.count('search') ?? session.findMatch(request, type, params)
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
        kind: 'write',
        request,
        permission,
        write: {
          kind: 'create',
          type,
          id,
          resource,
          ifNoneExist,
          ...(permission === 'u' && { mustBeNew: true }),
        },
      }
}

/** Updates the one match; without a match, creates the resource, under the id of the body if it has one. */
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
    return failFor('match-id-differs', { type })
  const id = match?.id ?? resource.id
  if (id === undefined) return planNew(context, request, 'u', resource, ifNoneExist)
  const planned = await planUpdate(context, request, { ...resource, id }, id)
  return match && createsResource(planned) ? MATCH_DELETED : planned
}

// Another request may have created another match: to restore this one would result in two.
const MATCH_DELETED = failFor('match-deleted')

/** Whether a plan creates a resource, by POST or under an id of the caller. */
export function createsResource(planned: Planned | Failure): boolean {
  if (isFailure(planned) || planned.kind !== 'write' || planned.write.kind === 'delete') return false
  return planned.write.kind === 'create' || !planned.write.before || planned.write.before.deleted
}

/** Validates the body of a write before a change is planned that nothing may interrupt. Other requests run in between. */
export async function validateInTurns({ interaction, body, work }: FhirRequest): Promise<void> {
  if (!isWriting(interaction) || interaction.kind === 'bundle') return
  if (interaction.kind !== 'patch' && interaction.kind !== 'patch-conditional')
    await runInTurns(work, validateAhead(body))
}

/**
 * The body of a write. Content that is checked must be valid: the backend might read invalid content differently than the
 * check. A remote backend validates content that is not checked.
 */
export function readResource(
  { local }: Pick<Context['session'], 'local'>,
  { body, access, isTrial }: Pick<FhirRequest, 'body' | 'access' | 'isTrial'>,
  permission: 'c' | 'u',
  type: string,
  id?: string,
): ExactResource | Failure {
  const resource = id === undefined ? readResourceBody(body, type) : readResourceBodyWithId(body, type, id)
  const isChecked = local !== undefined || isTrial || access.filterFor(type, permission) !== 'everything'
  if (isFailure(resource) && resource.reason === 'invalid-resource' && !isChecked)
    return body as ExactResource
  return resource
}
