import type { CurrentVersion, NativeContent } from '../../fhir/index.ts'
import type { Stored } from './repository/stored.ts'

/** The answer to an interaction, above or inside a Bundle. */
export interface Answer {
  readonly status: number
  /** The version that the answer speaks of: its ETag and Last-Modified. */
  readonly version?: Pick<Stored, 'version' | 'updated'>
  readonly location?: string
  /** The resource that was deleted, for the audit trail: `Condition/1`. */
  readonly removed?: string
  readonly headers?: Readonly<Record<string, string>>
  /** JSON of a resource. */
  readonly body?: string
  /** The content of the Binary in `body`, which is sent in its place. */
  readonly content?: NativeContent
}

/** R4 http.html#versioning: versions are weak ETags. */
export function etagOf({ version }: Pick<Stored, 'version'>): string {
  return `W/"${version}"`
}

/** What preconditions are compared with; undefined for a deleted resource. */
export function currentVersion(stored: Stored): CurrentVersion | undefined {
  return stored.deleted ? undefined : { etag: etagOf(stored), modified: stored.updated }
}

/** The HTTP headers of an answer. */
export function headersOf(answer: Answer): Readonly<Record<string, string>> {
  const { version, location, headers, body } = answer
  const all: Record<string, string> = {}
  if (body !== undefined) all['content-type'] = 'application/fhir+json; charset=utf-8'
  if (version) {
    all.etag = etagOf(version)
    all['last-modified'] = new Date(version.updated).toUTCString()
  }
  if (location !== undefined) all.location = location
  return headers ? Object.assign(all, headers) : all
}
