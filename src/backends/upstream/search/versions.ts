import {
  fail,
  formatExact,
  isRecord,
  isResource,
  parseReference,
  type Resource,
  toExact,
} from '../../../fhir/index.ts'
import type { HistoryEntry } from '../../../fhir-api/index.ts'
import { type Failure, type FhirRequest, isFailure } from '../../../fhir-api/index.ts'
import type { Permission } from '../../../smart/index.ts'
import { checkContent } from '../access.ts'
import type { GatewayContext } from '../context.ts'
import { findForPolicy } from '../membership/membership.ts'
import { readLast } from '../read-version.ts'

/** So many ids fit into the URL of one search. */
const IDS_AT_ONCE = 50

/** The current content of resources, by `Type/id`; of a deleted one, its last content. */
async function findCurrentContents(
  context: GatewayContext,
  request: FhirRequest,
  resources: readonly { readonly type: string; readonly id: string }[],
): Promise<ReadonlyMap<string, Resource> | Failure> {
  const contents = new Map<string, Resource>()
  for (const [type, some] of Map.groupBy(resources, it => it.type)) {
    const ids = [...new Set(some.map(it => it.id))]
    for (let at = 0; at < ids.length; at += IDS_AT_ONCE) {
      const few = ids.slice(at, at + IDS_AT_ONCE)
      const current = await findForPolicy(context, request, type, [['_id', few.join()]], few.length)
      if (isFailure(current)) return current
      for (const it of current) contents.set(`${type}/${it.id}`, it)
    }
    for (const id of ids) {
      const last = contents.has(`${type}/${id}`) ? undefined : await readLast(context, request, type, id)
      if (last && isFailure(last)) return last
      if (last) contents.set(`${type}/${id}`, last)
    }
  }
  return contents
}

interface Version {
  readonly type: string
  readonly id: string
  /** Undefined for a deletion. */
  readonly resource: Resource | undefined
  readonly exact: unknown
  readonly request: Readonly<Record<string, unknown>>
  readonly response: Readonly<Record<string, unknown>>
}

/** The entries of a history that may be seen, as entries of our own. */
export async function findVisibleVersions(
  context: GatewayContext,
  request: FhirRequest,
  permission: Permission,
  bundle: Resource,
  text: string,
  of?: { readonly id: string },
): Promise<readonly HistoryEntry[] | Failure> {
  const versions = parseVersions(bundle, toExact(bundle, text), context.baseUrl)
  if (!versions) return fail({ problem: 'upstream-broken', why: 'it did not answer a history with a Bundle' })
  const found = await findContents(context, request, versions)
  if (isFailure(found)) return found
  const contents = found
  const check = await checkContent(context, request, [...contents.values()], of?.id)
  if (isFailure(check)) return check
  const within = versions.filter(version => {
    const content = contents.get(version)
    return content && check.allows(permission, content)
  })
  // The API has checked the current version of a single resource.
  const shown = of ? within : await filterByCurrentContent(context, request, permission, within)
  return isFailure(shown) ? shown : shown.map(toEntry)
}

/** The versions whose resource is within the access in its current version too. */
async function filterByCurrentContent(
  context: GatewayContext,
  request: FhirRequest,
  permission: Permission,
  versions: readonly Version[],
): Promise<readonly Version[] | Failure> {
  const isLimited = ({ type }: Version) => request.access.filterFor(type, permission) !== 'everything'
  if (context.versionAccess === 'version' || !versions.some(isLimited)) return versions
  const current = await findCurrentContents(context, request, versions.filter(isLimited))
  if (isFailure(current)) return current
  const contents = current
  const check = await checkContent(context, request, [...contents.values()])
  if (isFailure(check)) return check
  return versions.filter(version => {
    const content = contents.get(`${version.type}/${version.id}`)
    return !isLimited(version) || (content !== undefined && check.allows(permission, content))
  })
}

/** The content by which each version is checked. The last content before a deletion is looked up unless it is on the page. */
async function findContents(
  context: GatewayContext,
  request: FhirRequest,
  versions: readonly Version[],
): Promise<ReadonlyMap<Version, Resource> | Failure> {
  const contents = new Map(findContentsOnPage(versions))
  const lookedUp = new Map<string, Resource | undefined>()
  for (const version of versions) {
    const { type, id } = version
    const key = `${type}/${id}`
    if (contents.has(version)) continue
    if (!lookedUp.has(key)) {
      const last = await readLast(context, request, type, id)
      if (last && isFailure(last)) return last
      lookedUp.set(key, last)
    }
    const content = lookedUp.get(key)
    if (content) contents.set(version, content)
  }
  return contents
}

/** A deletion is checked by the deleted content (ABSENT-3): the next older version on the page. */
function findContentsOnPage(versions: readonly Version[]): readonly (readonly [Version, Resource])[] {
  const older = new Map<string, Resource>()
  return versions.toReversed().flatMap(version => {
    const key = `${version.type}/${version.id}`
    const content = version.resource ?? older.get(key)
    if (!content) return []
    older.set(key, content)
    return [[version, content] as const]
  })
}

function parseVersions(bundle: Resource, exact: unknown, baseUrl: string): readonly Version[] | undefined {
  const { resourceType, entry = [] } = bundle
  const twins: unknown = isRecord(exact) ? exact.entry : undefined
  if (resourceType !== 'Bundle' || !Array.isArray(entry)) return undefined
  return entry.flatMap((it, at) => {
    if (!isRecord(it)) return []
    const twin: unknown = Array.isArray(twins) ? twins[at] : undefined
    const request = isRecord(it.request) ? it.request : {}
    const response = isRecord(it.response) ? it.response : {}
    const resource = isResource(it.resource) ? it.resource : undefined
    const of = resource
      ? getIdentity(resource)
      : findIdentity(baseUrl, it.fullUrl, request.url, response.location)
    return of
      ? [{ ...of, resource, exact: isRecord(twin) ? twin.resource : undefined, request, response }]
      : []
  })
}

function getIdentity({ resourceType: type, id }: Resource) {
  return typeof id === 'string' ? { type, id } : undefined
}

function findIdentity(baseUrl: string, ...urls: readonly unknown[]) {
  for (const url of urls) {
    const found = typeof url === 'string' ? parseReference(url, baseUrl) : undefined
    if (found) return { type: found.type, id: found.id }
  }
  return undefined
}

const METHODS = ['POST', 'PUT', 'PATCH', 'DELETE']

function toEntry({ type, id, resource, exact, request, response }: Version): HistoryEntry {
  const { status, etag, lastModified } = response
  return {
    type,
    id,
    text: resource && formatExact(exact),
    method: METHODS.find(it => it === request.method) ?? (resource ? 'PUT' : 'DELETE'),
    status:
      typeof status === 'string' && /^\d{3}\b/.test(status)
        ? status.slice(0, 32)
        : resource
          ? '200 OK'
          : '204 No Content',
    etag: typeof etag === 'string' ? etag : undefined,
    lastModified: typeof lastModified === 'string' ? lastModified : undefined,
  }
}
