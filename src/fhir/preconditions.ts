import type { FhirProblem } from './problem.ts'
import { failFor } from './reasons/reasons.ts'
import type { Preconditions } from './request.ts'

/** The current version of a resource, as preconditions compare it. */
export interface CurrentVersion {
  readonly etag: string | undefined
  /** Milliseconds since 1970. */
  readonly modified?: number | undefined
}

/** Whether the caller already has this version (R4 http.html#cread). If-None-Match takes precedence over If-Modified-Since. */
export function isUnchanged(
  { etag, modified }: CurrentVersion,
  { ifNoneMatch, ifModifiedSince }: Preconditions,
): boolean {
  if (ifNoneMatch !== undefined) return includesTag(ifNoneMatch, etag)
  if (ifModifiedSince === undefined || modified === undefined) return false
  // The header has whole seconds.
  return Math.floor(modified / 1000) * 1000 <= Date.parse(ifModifiedSince)
}

/** Why a write must not replace this version, or create one (R4 http.html#concurrency). */
export function describeStaleness(
  current: CurrentVersion | undefined,
  { ifMatch, ifNoneMatch }: Preconditions,
): FhirProblem | undefined {
  if (ifMatch !== undefined && !current) return failFor('if-match-of-absent')
  if (ifMatch !== undefined && !includesTag(ifMatch, current?.etag))
    return current?.etag === undefined
      ? failFor('if-match-of-unversioned')
      : failFor('if-match-differs', { version: stripWeakness(current.etag) })
  if (ifNoneMatch !== undefined && current && includesTag(ifNoneMatch, current.etag))
    return failFor('if-none-match-names-current')
  return undefined
}

function includesTag(header: string, etag: string | undefined): boolean {
  return header
    .split(',')
    .map(tag => stripWeakness(tag.trim()))
    .some(tag => tag === '*' || (etag !== undefined && tag === stripWeakness(etag)))
}

/** `W/"3"`, `"3"` and `3` name the same version. */
function stripWeakness(tag: string): string {
  return tag.replace(/^W\//, '').replace(/^"(.*)"$/, '$1')
}
