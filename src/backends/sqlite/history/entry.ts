import { entryJson } from '../../../fhir-api/index.ts'
import { etagOf } from '../answer.ts'
import type { Version } from './read-versions.ts'

/** A version in a history Bundle: what it was, and what made it. */
export function historyEntry(baseUrl: string, version: Version): string {
  const { type, id, method, isCreation, updated, content } = version
  const isDeletion = method === 'DELETE'
  return entryJson({
    fullUrl: `${baseUrl}/${type}/${id}`,
    ...(!isDeletion && { resource: content }),
    request: { method, url: method === 'POST' ? type : `${type}/${id}` },
    response: {
      status: isDeletion ? '204 No Content' : isCreation ? '201 Created' : '200 OK',
      etag: etagOf(version),
      lastModified: new Date(updated).toISOString(),
    },
  })
}
