import { fail, isFailure } from '../../../core/index.ts'
import { failFor } from '../../../fhir/index.ts'
import type { Failure, FhirRequest, StoredVersion } from '../../../fhir-api/index.ts'
import type { GatewayContext } from '../context.ts'
import { LOST_VERSIONS } from '../limits.ts'
import { readVersion } from '../read/read-version.ts'
import { type Delete, getDeletion, parseVersion } from './binding.ts'

/**
 * Finds out whether a DELETE that the upstream reports as done has deleted the checked version: `undeleted` if the resource
 * was changed and is still there, `deleted-newer` if a version was deleted that nobody has checked. Reads nothing where the
 * upstream honours `If-Match`.
 */
export async function verifyDelete(
  context: GatewayContext,
  request: FhirRequest,
  write: Delete,
  isTransaction: boolean,
): Promise<Failure | undefined> {
  const { boundDelete } = context.profile()
  if (boundDelete === 'if-match') return undefined
  const { type, id, before } = write
  const current = await readVersion(context, request, type, id)
  if (!current || isFailure(current)) return undefined
  const isBound = boundDelete === 'version-in-url' && !isTransaction
  // Another client may have created the resource again.
  if (isBound) return current.etag === before.etag ? failFor('undeleted', { type, id }) : undefined
  const { newer, isDeleted } = await findNewer(context, request, write, current)
  if (!isDeleted) return failFor('undeleted', { type, id })
  return newer.length > 0
    ? fail({ ...failFor('deleted-newer', { type, id }), affected: [before, ...newer] })
    : undefined
}

interface Newer {
  /** The versions between the checked one and the next deletion. */
  readonly newer: readonly StoredVersion[]
  readonly isDeleted: boolean
}

async function findNewer(
  context: GatewayContext,
  request: FhirRequest,
  { type, id, before }: Delete,
  current: StoredVersion,
): Promise<Newer> {
  const newer: StoredVersion[] = []
  const checked = parseVersion(before.etag) ?? Number.NaN
  const last = getDeletion(current) ?? parseVersion(current.etag) ?? Number.NaN
  for (let number = checked + 1; number < Math.min(last, checked + 1 + LOST_VERSIONS); number++) {
    const version = await readVersion(context, request, type, id, String(number))
    if (!version || isFailure(version)) continue
    if (version.deleted) return { newer, isDeleted: true }
    newer.push(version)
  }
  return { newer, isDeleted: current.deleted }
}

/** The version that an update has replaced, although it had to create the resource. */
export async function findReplaced(
  context: GatewayContext,
  request: FhirRequest,
  type: string,
  id: string,
  etag: string | undefined,
): Promise<readonly StoredVersion[]> {
  const version = parseVersion(etag)
  if (version === undefined || version < 2) return []
  const replaced = await readVersion(context, request, type, id, String(version - 1))
  return replaced && !isFailure(replaced) && !replaced.deleted ? [replaced] : []
}
