import type { SentContent } from '../../audit/index.ts'
import { isFailure } from '../../core/index.ts'
import { createOutcome, failFor, parseReference, type Resource, toPlain } from '../../fhir/index.ts'
import { checkStored, findResource, isWithin } from '../access/find-resource.ts'
import type { Committed, VersionedWrite } from '../backend.ts'
import type { Context } from '../context.ts'
import type { FhirRequest } from '../request.ts'
import type { FhirResponse } from '../response.ts'
import type { StoredVersion } from '../stored-version.ts'
import { toResponse } from '../to-response.ts'

/** The response to a change without its content, also for the audit trail. */
export function describeWrite(write: VersionedWrite, committed: Committed): FhirResponse {
  const { status, version, location, headers } = committed
  return {
    status,
    version,
    location,
    headers,
    after: findWritten(write, committed),
    before: findFormer(write),
    deleted: write.kind === 'delete' ? `${write.type}/${write.id}` : undefined,
  }
}

/** The new version or, if the backend does not return it, its content; undefined if the id is not known either. */
function findWritten(write: VersionedWrite, { stored, patients }: Committed): SentContent | undefined {
  if (write.kind === 'delete') return undefined
  if (stored) return stored
  const { type, id, resource } = write
  return id === undefined
    ? undefined
    : {
        type,
        id,
        text: undefined,
        parse: () => ({ ...toPlain(resource), id }),
        findPatients: () => patients,
      }
}

function findFormer(write: VersionedWrite): SentContent | undefined {
  return write.kind === 'create' || !write.before || write.before.deleted ? undefined : write.before
}

/** The response to a change: with the resource, unless the caller prefers less or may not read it. */
export async function respondToWrite(
  context: Context,
  request: FhirRequest,
  write: VersionedWrite,
  committed: Committed,
): Promise<FhirResponse> {
  if (
    write.kind === 'create' &&
    committed.status === 200 &&
    !(await mayNameMatch(context, request, committed))
  )
    return toResponse(MATCH_HIDDEN)
  return addContent(context, request, describeWrite(write, committed), committed.stored)
}

const MATCH_HIDDEN = failFor('match-created')

/** Whether the caller may learn which resource a conditional create has found: it was created after the plan. */
async function mayNameMatch(
  context: Context,
  request: FhirRequest,
  { location = '', stored }: Committed,
): Promise<boolean> {
  if (stored) return mayRead(context, request, stored)
  const match = parseReference(location, context.baseUrl)
  const found =
    match && (await findResource(context, request, { permission: 'r', type: match.type, id: match.id }))
  return found !== undefined && !isFailure(found)
}

/** The response to a create that changes nothing, because the resource exists already. */
export function respondUnchanged(
  context: Context,
  request: FhirRequest,
  stored: StoredVersion,
): Promise<FhirResponse> {
  const { type, id, etag, lastModified } = stored
  const resource = stored.parse()
  const versionId = isFailure(resource) ? undefined : resource.meta?.versionId
  const url = `${context.baseUrl}/${type}/${id}`
  const location = versionId === undefined ? url : `${url}/_history/${versionId}`
  const response = { status: 200, version: { etag, lastModified }, location, after: stored }
  return addContent(context, request, response, stored)
}

async function addContent(
  context: Context,
  request: FhirRequest,
  response: FhirResponse,
  stored: StoredVersion | undefined,
): Promise<FhirResponse> {
  if (response.status === 204) return response
  switch (request.preferences.answer) {
    case 'minimal':
      return response
    case 'OperationOutcome':
      return { ...response, body: JSON.stringify(describeSuccess(response.status)) }
    case 'representation':
      return stored && (await mayRead(context, request, stored))
        ? { ...response, body: stored.text }
        : response
  }
}

/** The change is committed: if the check fails, the content is not shown. */
async function mayRead(context: Context, request: FhirRequest, stored: StoredVersion): Promise<boolean> {
  return (await isWithin(context, request, 'r', stored, stored.text ?? '')) === true
}

export async function mayReadContent(
  context: Context,
  request: FhirRequest,
  resource: Resource,
): Promise<boolean> {
  const check = await checkStored(context, request, [resource])
  return !isFailure(check) && check.allows('r', resource)
}

function describeSuccess(status: number): object {
  const { resourceType, issue } = createOutcome('informational', status === 201 ? 'Created' : 'Updated')
  return { resourceType, issue: issue.map(it => ({ ...it, severity: 'information' })) }
}
