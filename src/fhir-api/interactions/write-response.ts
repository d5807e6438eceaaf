import { createOutcome, type Resource } from '../../fhir/index.ts'
import { checkStored, isWithin } from '../access/find-resource.ts'
import type { Committed, VersionedWrite } from '../backend.ts'
import type { Context } from '../context.ts'
import type { FhirRequest } from '../request.ts'
import type { FhirResponse } from '../response.ts'
import { isFailure } from '../response.ts'
import type { StoredVersion } from '../stored-version.ts'

/** The response to a change without its content, also for the audit trail. */
export function describeWrite(write: VersionedWrite, committed: Committed): FhirResponse {
  const { status, version, location, headers } = committed
  const before = write.kind === 'create' ? undefined : write.before
  const content = before && !before.deleted ? before.parse() : undefined
  return {
    ...{ status, version, location, headers },
    before: content && !isFailure(content) ? content : undefined,
    deleted: write.kind === 'delete' ? `${write.type}/${write.id}` : undefined,
  }
}

/** The response to a change: with the resource, unless the caller prefers less or may not read it. */
export function respondToWrite(
  context: Context,
  request: FhirRequest,
  write: VersionedWrite,
  committed: Committed,
): Promise<FhirResponse> {
  return addContent(context, request, describeWrite(write, committed), committed.stored)
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
  return addContent(context, request, { status: 200, version: { etag, lastModified }, location }, stored)
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
