import { isProblem, outcome, type Resource } from '../../fhir/index.ts'
import type { Answer } from '../answer.ts'
import type { Call, Context } from '../call.ts'
import { versionOf } from '../judge/find.ts'
import { reaches } from '../judge/reaches.ts'
import type { Problem } from '../problem.ts'
import { declined } from '../upstream/declined.ts'
import { exactText } from '../upstream/exact.ts'
import { releasedHeaders } from '../upstream/pass-through.ts'
import { resourceIn } from '../upstream/resource-in.ts'
import type { UpstreamAnswer } from '../upstream/upstream.ts'
import { versionHeaders } from './read.ts'

/**
 * The answer to a write: the resource, unless the caller prefers less or may not read it (a write without read
 * permission is answered with the minimum).
 */
export function written(context: Context, call: Call, answer: UpstreamAnswer | Problem): Answer | Problem {
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
export function unchanged(context: Context, call: Call, resource: Resource, exact: unknown): Answer {
  const version = versionOf({ headers: {} }, resource.meta)
  const address = `${context.baseUrl}/${resource.resourceType}/${resource.id}`
  const versionId = resource.meta?.versionId
  const location = typeof versionId === 'string' ? `${address}/_history/${versionId}` : address
  return said(context, call, 200, { ...versionHeaders(version), location }, resource, exactText(exact))
}

function said(
  { baseUrl }: Context,
  { access, preferences }: Call,
  status: 200 | 201,
  headers: Answer['headers'],
  resource: Resource | undefined,
  text: string,
): Answer {
  switch (preferences.answer) {
    case 'minimal':
      return { status, headers }
    case 'OperationOutcome':
      return { status, headers, body: JSON.stringify(done(status)) }
    case 'representation':
      return resource && reaches(access, 'r', resource, baseUrl)
        ? { status, headers, body: text }
        : { status, headers }
  }
}

function done(status: 200 | 201): object {
  const { resourceType, issue } = outcome('informational', status === 201 ? 'Created' : 'Updated')
  return { resourceType, issue: issue.map(it => ({ ...it, severity: 'information' })) }
}
