import { exactText, isProblem, outcome, type Resource } from '../../../fhir/index.ts'
import type { Answer } from '../answer.ts'
import type { Call, Context } from '../call.ts'
import { type Living, versionOf } from '../judge/find.ts'
import { checkContent } from '../judge/judge.ts'
import type { Problem } from '../problem.ts'
import { declined } from '../upstream/declined.ts'
import { releasedHeaders } from '../upstream/pass-through.ts'
import { resourceIn } from '../upstream/resource-in.ts'
import type { UpstreamAnswer } from '../upstream/upstream.ts'

/**
 * The answer to a write: the resource, unless the caller prefers less or may not read it (a write without read
 * permission is answered with the minimum).
 */
export async function written(
  context: Context,
  call: Call,
  answer: UpstreamAnswer | Problem,
): Promise<Answer | Problem> {
  if (isProblem(answer)) return answer
  if (answer.status >= 300) return declined(answer, call.access)
  const status = answer.status === 201 ? 201 : 200
  const headers = releasedHeaders(answer.headers, context.addresses)
  const resource = answer.text === '' ? undefined : resourceIn(answer)
  if (!resource || isProblem(resource)) return said(context, call, status, headers, undefined, '')
  return said(
    context,
    call,
    status,
    { ...versionHeaders(versionOf(answer, resource.meta)), ...headers },
    resource,
    answer.text,
  )
}

/** The answer to a write that changed nothing, since the resource is there already. */
export function unchanged(context: Context, call: Call, resource: Resource, exact: unknown): Promise<Answer> {
  const version = versionOf({ headers: {} }, resource.meta)
  const address = `${context.baseUrl}/${resource.resourceType}/${resource.id}`
  const versionId = resource.meta?.versionId
  const location = typeof versionId === 'string' ? `${address}/_history/${versionId}` : address
  return said(context, call, 200, { ...versionHeaders(version), location }, resource, exactText(exact))
}

async function said(
  context: Context,
  call: Call,
  status: 200 | 201,
  headers: Answer['headers'],
  resource: Resource | undefined,
  text: string,
): Promise<Answer> {
  switch (call.preferences.answer) {
    case 'minimal':
      return { status, headers }
    case 'OperationOutcome':
      return { status, headers, body: JSON.stringify(done(status)) }
    case 'representation':
      return resource && (await mayShow(context, call, resource))
        ? { status, headers, body: text }
        : { status, headers }
  }
}

/** What was written is written: where it cannot be told whether it may be shown, it is not. */
export async function mayShow(context: Context, call: Call, resource: Resource): Promise<boolean> {
  const judge = await checkContent(context, call, [resource])
  return !isProblem(judge) && judge.allows('r', resource)
}

function done(status: 200 | 201): object {
  const { resourceType, issue } = outcome('informational', status === 201 ? 'Created' : 'Updated')
  return { resourceType, issue: issue.map(it => ({ ...it, severity: 'information' })) }
}

function versionHeaders({
  etag,
  lastModified,
}: Pick<Living, 'etag' | 'lastModified'>): Readonly<Record<string, string>> {
  return {
    ...(etag !== undefined && { etag }),
    ...(lastModified !== undefined && { 'last-modified': lastModified }),
  }
}
