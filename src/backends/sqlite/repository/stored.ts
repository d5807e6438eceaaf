import { type ExactResource, formatExact, type Resource } from '../../../fhir/index.ts'

/** A resource as it is kept: its current version, or an old one. */
export interface Stored {
  readonly rid: number
  readonly type: string
  readonly id: string
  readonly version: number
  /** Milliseconds since 1970. */
  readonly updated: number
  readonly deleted: boolean
  /** JSON. For a deleted resource that of its last version, by which it is checked (ABSENT-3). */
  readonly content: string
}

/** The content that is kept: the server's own id, version and time in the place of the sender's. */
export function contentOf(resource: ExactResource, id: string, version: number, updated: number): string {
  const { resourceType, id: _id, meta, ...rest } = resource
  const stamp = { ...meta, versionId: String(version), lastUpdated: new Date(updated).toISOString() }
  return formatExact({ resourceType, id, meta: stamp, ...rest })
}

/** What was written by `contentOf` is a resource. */
export function resourceOf(stored: Pick<Stored, 'content'>): Resource {
  return JSON.parse(stored.content) as Resource
}
