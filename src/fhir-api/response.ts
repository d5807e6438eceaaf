import type { Readable } from 'node:stream'
import type { SentContent } from '../audit/index.ts'
import type { NativeContent, Resource } from '../fhir/index.ts'

/** The version that a response describes. */
export interface ResponseVersion {
  readonly etag: string | undefined
  /** Milliseconds since 1970. */
  readonly lastModified: number | undefined
}

/** The response to an interaction: to a request of its own or to an entry of a Bundle. */
export interface FhirResponse {
  readonly status: number
  /** Becomes `ETag` and `Last-Modified`. */
  readonly version?: ResponseVersion | undefined
  readonly location?: string | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** JSON of a resource; a stream if nothing in it has to be checked. */
  readonly body?: string | Readable | undefined
  /** Whether `body` is from another server and was not parsed, so that it may not be JSON. */
  readonly isUnparsed?: true
  /** The content of the Binary in `body`, which is sent instead of the resource. */
  readonly content?: NativeContent | undefined
  /** For the audit trail: the resources in `body`, so that it is not parsed again. */
  readonly contents?: readonly SentContent[] | undefined
  /** For the audit trail: the resource as it was before a write. */
  readonly before?: Resource | undefined
  /** For the audit trail: the resource that was deleted (`Condition/1`). */
  readonly deleted?: string | undefined
  /** For the audit trail: the responses to the entries of a Bundle. */
  readonly entries?: readonly FhirResponse[] | undefined
  /** Whether the audit records of the change are stored with it. */
  readonly isRecorded?: boolean | undefined
  /** Resolves when the change is durable; rejects when it was lost. The response is sent only then. */
  readonly durable?: Promise<void> | undefined
}

const JSON_TYPE = 'application/fhir+json; charset=utf-8'

/** The HTTP headers of a response. */
export function getHeaders(response: FhirResponse): Readonly<Record<string, string>> {
  const { version, location, headers, body } = response
  const all: Record<string, string> = {}
  if (body !== undefined) all['content-type'] = JSON_TYPE
  if (version?.etag !== undefined) all.etag = version.etag
  if (version?.lastModified !== undefined) all['last-modified'] = new Date(version.lastModified).toUTCString()
  if (location !== undefined) all.location = location
  return headers ? Object.assign(all, headers) : all
}
