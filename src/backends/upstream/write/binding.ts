import { fail, isFailure } from '../../../core/index.ts'
import { failFor } from '../../../fhir/index.ts'
import type { Failure, StoredVersion, VersionedWrite } from '../../../fhir-api/index.ts'
import type { Access } from '../../../smart/index.ts'
import type { UpstreamProfile } from '../profile.ts'
import { DeletedVersion } from '../read/read-version.ts'

type Update = Extract<VersionedWrite, { readonly kind: 'update' }>
export type Delete = Extract<VersionedWrite, { readonly kind: 'delete' }>

/** The preconditions under which the checked version is still the current one. */
export interface Binding {
  readonly ifMatch?: string
  readonly ifNoneMatch?: string
}

export function bindUpdate(
  { type, before }: Update,
  { createOnlyPut }: UpstreamProfile,
  access: Access,
): Binding | Failure {
  if (before && !before.deleted)
    return before.etag === undefined ? failFor('no-version', { type }) : { ifMatch: before.etag }
  switch (createOnlyPut) {
    case 'if-none-match':
      return { ifNoneMatch: '*' }
    case 'if-match-zero':
      return { ifNoneMatch: '*', ifMatch: `W/"${getDeletion(before) ?? 0}"` }
    case 'none':
      return access.filterFor(type, 'u') === 'everything'
        ? { ifNoneMatch: '*' }
        : fail({ ...failFor('unbound-create', { type }), allow: ['GET', 'HEAD'] })
  }
}

/** Whether an update that had to create a resource has replaced one, by the version that it made. */
export function hasOverwritten(write: VersionedWrite, status: number, etag: string | undefined): boolean {
  if (write.kind !== 'update' || (write.before && !write.before.deleted)) return false
  const version = parseVersion(etag)
  // Some servers answer a create with 200, and have versions that are not numbers.
  if (version === undefined) return false
  // After a deletion servers continue the count, and HAPI skips a version if the resource has references.
  return write.before ? status === 200 : version > 1
}

/** The version of a deletion, where the upstream names it. */
export function getDeletion(before: StoredVersion | undefined): number | undefined {
  return before instanceof DeletedVersion ? before.deletion : undefined
}

/** A DELETE of the checked version: its path below the base, without a slash, and its precondition. */
export interface BoundDelete extends Binding {
  readonly url: string
}

/**
 * HAPI ignores `If-Match` on DELETE, but compares the version in the URL with the current one, and deletes that version or
 * none. In a transaction it ignores both: there a condition on `_lastUpdated` leaves only the moment between its own search
 * and its delete.
 */
export function bindDelete(
  { type, id, before }: Delete,
  { boundDelete }: UpstreamProfile,
  isTransaction: boolean,
): BoundDelete | Failure {
  const url = `${type}/${id}`
  const { etag } = before
  if (boundDelete !== 'version-in-url') return { url, ...(etag !== undefined && { ifMatch: etag }) }
  if (isTransaction) {
    const lastUpdated = getLastUpdated(before)
    return lastUpdated === undefined
      ? { url }
      : { url: `${type}?_id=${id}&_lastUpdated=${encodeURIComponent(`eq${lastUpdated}`)}` }
  }
  const version = parseVersion(etag)
  return version === undefined ? failFor('no-version', { type }) : { url: `${url}/_history/${version}` }
}

/** The version that an entity tag names, as a number; some servers have other versions. */
export function parseVersion(etag: string | undefined): number | undefined {
  const version = /^(?:W\/)?"(\d{1,9})"$/.exec(etag ?? '')?.[1]
  return version === undefined ? undefined : Number(version)
}

function getLastUpdated(before: StoredVersion): string | undefined {
  const resource = before.parse()
  const text = isFailure(resource) ? undefined : resource.meta?.lastUpdated
  return typeof text === 'string' && /T\d{2}:\d{2}:\d{2}\.\d{3}/.test(text) ? text : undefined
}
