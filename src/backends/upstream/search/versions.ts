import {
  fail,
  formatExact,
  isProblem,
  isRecord,
  isResource,
  parseReference,
  type Resource,
  toExact,
} from '../../../fhir/index.ts'
import type { HistoryEntry } from '../../../fhir-api/index.ts'
import type { Permission } from '../../../smart/index.ts'
import { checkContent } from '../access.ts'
import type { Call, Context } from '../context.ts'
import { findForPolicy } from '../membership/membership.ts'
import type { Problem } from '../problem.ts'
import { readLast } from '../read-version.ts'

/** So many ids fit into the URL of one search. */
const IDS_AT_ONCE = 50

/** The current content of resources, by `Type/id`; of a deleted one, its last content. */
async function findCurrentContents(
  context: Context,
  call: Call,
  resources: readonly { readonly type: string; readonly id: string }[],
): Promise<ReadonlyMap<string, Resource> | Problem> {
  const contents = new Map<string, Resource>()
  for (const [type, some] of Map.groupBy(resources, it => it.type)) {
    const ids = [...new Set(some.map(it => it.id))]
    for (let at = 0; at < ids.length; at += IDS_AT_ONCE) {
      const few = ids.slice(at, at + IDS_AT_ONCE)
      const current = await findForPolicy(context, call, type, [['_id', few.join()]], few.length)
      if (isProblem(current)) return current
      for (const it of current) contents.set(`${type}/${it.id}`, it)
    }
    for (const id of ids) {
      const last = contents.has(`${type}/${id}`) ? undefined : await readLast(context, call, type, id)
      if (last && isProblem(last)) return last
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
  context: Context,
  call: Call,
  permission: Permission,
  bundle: Resource,
  text: string,
  of?: { readonly id: string },
): Promise<readonly HistoryEntry[] | Problem> {
  const versions = versionsIn(bundle, toExact(bundle, text), context.baseUrl)
  if (!versions) return fail({ problem: 'upstream-broken', why: 'it did not answer a history with a Bundle' })
  const found = await contentsOf(context, call, versions)
  if (isProblem(found)) return found as Problem
  const contents = found as ReadonlyMap<Version, Resource>
  const judge = await checkContent(context, call, [...contents.values()], of?.id)
  if (isProblem(judge)) return judge
  const within = versions.filter(version => {
    const content = contents.get(version)
    return content && judge.allows(permission, content)
  })
  // Of one resource, the current version was judged before.
  const shown = of ? within : await currentlyWithin(context, call, permission, within)
  return isProblem(shown) ? (shown as Problem) : (shown as readonly Version[]).map(toEntry)
}

/** Of these versions, those whose resource is within the reach in its current version too. */
async function currentlyWithin(
  context: Context,
  call: Call,
  permission: Permission,
  versions: readonly Version[],
): Promise<readonly Version[] | Problem> {
  const isLimited = ({ type }: Version) => call.access.filterFor(type, permission) !== 'everything'
  if (context.versionAccess === 'version' || !versions.some(isLimited)) return versions
  const current = await findCurrentContents(context, call, versions.filter(isLimited))
  if (isProblem(current)) return current as Problem
  const contents = current as ReadonlyMap<string, Resource>
  const judge = await checkContent(context, call, [...contents.values()])
  if (isProblem(judge)) return judge
  return versions.filter(version => {
    const content = contents.get(`${version.type}/${version.id}`)
    return !isLimited(version) || (content !== undefined && judge.allows(permission, content))
  })
}

/** By what each version is judged. A deletion whose last content is not on the page is looked up. */
async function contentsOf(
  context: Context,
  call: Call,
  versions: readonly Version[],
): Promise<ReadonlyMap<Version, Resource> | Problem> {
  const contents = new Map(onPage(versions))
  const lookedUp = new Map<string, Resource | undefined>()
  for (const version of versions) {
    const { type, id } = version
    const address = `${type}/${id}`
    if (contents.has(version)) continue
    if (!lookedUp.has(address)) {
      const last = await readLast(context, call, type, id)
      if (last && isProblem(last)) return last
      lookedUp.set(address, last)
    }
    const content = lookedUp.get(address)
    if (content) contents.set(version, content)
  }
  return contents
}

/** A deletion is checked by the deleted content (ABSENT-3): the next older version on the page. */
function onPage(versions: readonly Version[]): readonly (readonly [Version, Resource])[] {
  const older = new Map<string, Resource>()
  return versions.toReversed().flatMap(version => {
    const address = `${version.type}/${version.id}`
    const content = version.resource ?? older.get(address)
    if (!content) return []
    older.set(address, content)
    return [[version, content] as const]
  })
}

function versionsIn(bundle: Resource, exact: unknown, baseUrl: string): readonly Version[] | undefined {
  const { resourceType, entry = [] } = bundle
  const twins: unknown = isRecord(exact) ? exact.entry : undefined
  if (resourceType !== 'Bundle' || !Array.isArray(entry)) return undefined
  return entry.flatMap((it, at) => {
    if (!isRecord(it)) return []
    const twin: unknown = Array.isArray(twins) ? twins[at] : undefined
    const request = isRecord(it.request) ? it.request : {}
    const response = isRecord(it.response) ? it.response : {}
    const resource = isResource(it.resource) ? it.resource : undefined
    const of = resource ? identity(resource) : addressIn(baseUrl, it.fullUrl, request.url, response.location)
    return of
      ? [{ ...of, resource, exact: isRecord(twin) ? twin.resource : undefined, request, response }]
      : []
  })
}

function identity({ resourceType: type, id }: Resource) {
  return typeof id === 'string' ? { type, id } : undefined
}

function addressIn(baseUrl: string, ...addresses: readonly unknown[]) {
  for (const address of addresses) {
    const found = typeof address === 'string' ? parseReference(address, baseUrl) : undefined
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
