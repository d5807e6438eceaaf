import { fail, type Preconditions } from '../../fhir/index.ts'
import type { Problem } from '../problem.ts'
import type { Living } from './find.ts'

/** Whether the caller has this version already (R4 http.html#cread). If-None-Match goes before If-Modified-Since. */
export function isUnchanged(
  { etag, lastModified }: Living,
  { ifNoneMatch, ifModifiedSince }: Preconditions,
): boolean {
  if (ifNoneMatch !== undefined) return names(ifNoneMatch, etag)
  if (ifModifiedSince === undefined || lastModified === undefined) return false
  return Date.parse(lastModified) <= Date.parse(ifModifiedSince)
}

/** Why a write must not go on from this version (R4 http.html#concurrency): somebody else was there first. */
export function staleness(
  living: Living | undefined,
  { ifMatch, ifNoneMatch }: Preconditions,
): Problem | undefined {
  if (ifMatch !== undefined && !(living && names(ifMatch, living.etag)))
    return fail({
      problem: 'stale',
      text: living
        ? 'Cannot write: If-Match does not name the current version'
        : 'Cannot write: If-Match names a version, and the resource does not exist',
    })
  if (ifNoneMatch !== undefined && living && names(ifNoneMatch, living.etag))
    return fail({ problem: 'stale', text: 'Cannot write: If-None-Match names the current version' })
  return undefined
}

function names(header: string, etag: string | undefined): boolean {
  return header
    .split(',')
    .map(tag => plain(tag.trim()))
    .some(tag => tag === '*' || (etag !== undefined && tag === plain(etag)))
}

/** Without its weakness: `W/"3"` and `"3"` name the same version. A bare number is taken too. */
function plain(tag: string): string {
  return tag.replace(/^W\//, '').replace(/^"(.*)"$/, '$1')
}
