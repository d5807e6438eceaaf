import { fail, type Preconditions } from '../fhir/index.ts'
import { etagOf } from './answer.ts'
import type { Problem } from './problem.ts'
import type { Stored } from './repository/stored.ts'

/** Whether the caller has this version already (R4 http.html#cread). If-None-Match goes before If-Modified-Since. */
export function isUnchanged(stored: Stored, { ifNoneMatch, ifModifiedSince }: Preconditions): boolean {
  if (ifNoneMatch !== undefined)
    return tagsOf(ifNoneMatch).some(tag => tag === '*' || tag === weak(etagOf(stored)))
  if (ifModifiedSince === undefined) return false
  // The header has whole seconds, the version has milliseconds.
  return Math.floor(stored.updated / 1000) * 1000 <= Date.parse(ifModifiedSince)
}

/** Why a write must not go on from this version (R4 http.html#concurrency): somebody else was there first. */
export function staleness(
  stored: Stored | undefined,
  { ifMatch, ifNoneMatch }: Preconditions,
): Problem | undefined {
  const living = stored && !stored.deleted ? weak(etagOf(stored)) : undefined
  if (
    ifMatch !== undefined &&
    !tagsOf(ifMatch).some(tag => living !== undefined && (tag === '*' || tag === living))
  )
    return fail({
      problem: 'stale',
      text: living
        ? `Cannot write: If-Match does not name the current version ${stored?.version}`
        : 'Cannot write: If-Match names a version, and the resource does not exist',
    })
  if (
    ifNoneMatch !== undefined &&
    living !== undefined &&
    tagsOf(ifNoneMatch).some(tag => tag === '*' || tag === living)
  )
    return fail({ problem: 'stale', text: 'Cannot write: If-None-Match names the current version' })
  return undefined
}

/** Entity tags without their weakness: `W/"3"` and `"3"` name the same version. A bare number is taken too. */
function tagsOf(header: string): readonly string[] {
  return header.split(',').map(tag => weak(tag.trim()))
}

function weak(tag: string): string {
  return tag.replace(/^W\//, '').replace(/^"(.*)"$/, '$1')
}
