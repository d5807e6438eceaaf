import type { CurrentVersion } from '../../fhir/index.ts'
import type { FhirResponse, ResponseVersion } from '../../fhir-api/index.ts'
import type { Stored } from './repository/stored.ts'

/** The response to an interaction. */
export interface Answer extends FhirResponse {
  readonly body?: string | undefined
}

/** R4 http.html#versioning: versions are weak ETags. */
export function etagOf({ version }: Pick<Stored, 'version'>): string {
  return `W/"${version}"`
}

export function versionOf(stored: Pick<Stored, 'version' | 'updated'>): ResponseVersion {
  return { etag: etagOf(stored), lastModified: stored.updated }
}

/** What preconditions are compared with; undefined for a deleted resource. */
export function currentVersion(stored: Stored): CurrentVersion | undefined {
  return stored.deleted ? undefined : { etag: etagOf(stored), modified: stored.updated }
}

/** A response that is made here is never a stream. */
export function toAnswer(response: FhirResponse): Answer {
  return { ...response, body: typeof response.body === 'string' ? response.body : undefined }
}
