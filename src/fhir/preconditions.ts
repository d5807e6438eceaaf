import { fail } from '../core/index.ts'
import type { FhirProblem } from './problem.ts'
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
  if (ifMatch !== undefined && !current)
    return createStale('Cannot write: If-Match names a version, and the resource does not exist')
  if (ifMatch !== undefined && !includesTag(ifMatch, current?.etag))
    return createStale(
      `Cannot write: If-Match does not name the current version ${stripWeakness(current?.etag ?? '')}`.trim(),
    )
  if (ifNoneMatch !== undefined && current && includesTag(ifNoneMatch, current.etag))
    return createStale('Cannot write: If-None-Match names the current version')
  return undefined
}

function createStale(text: string): FhirProblem {
  return fail({ problem: 'stale', text })
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
