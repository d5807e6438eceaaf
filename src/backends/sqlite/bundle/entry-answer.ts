import { STATUS_CODES } from 'node:http'
import { entryJson } from '../../../fhir-api/index.ts'
import type { Answer } from '../answer.ts'

/** The answer to one entry as an entry: what went wrong is its `outcome`, what was asked for is its `resource`. */
export function entryAnswer(answer: Answer): string {
  const { status, version, location, body } = answer
  const isOutcome = body?.startsWith('{"resourceType":"OperationOutcome"') ?? false
  return entryJson({
    ...(body !== undefined && !isOutcome && { resource: body }),
    ...(location !== undefined && { fullUrl: location.replace(/\/_history\/[^/]+$/, '') }),
    response: {
      status: `${status} ${STATUS_CODES[status] ?? ''}`.trim(),
      ...(location !== undefined && { location }),
      ...(version && { etag: version.etag, lastModified: new Date(version.lastModified ?? 0).toISOString() }),
      ...(isOutcome && { outcome: JSON.parse(body ?? '{}') }),
    },
  })
}
