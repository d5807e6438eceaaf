import { isFailure, isRecord } from '../../../core/index.ts'
import {
  findContentPatients,
  type HistoryQuery,
  type Params,
  parseReference,
  type Resource,
} from '../../../fhir/index.ts'
import {
  type Failure,
  type FhirRequest,
  failBroken,
  getPath,
  type History,
  type HistoryEntry,
  type HistoryPage,
} from '../../../fhir-api/index.ts'
import { chunk, IDS_AT_ONCE } from '../chunk.ts'
import type { GatewayContext } from '../context.ts'
import { buildQuery, dropFormat } from '../http/build-request.ts'
import { type BundleEntry, failTooCostly, parseEntry } from '../http/response.ts'
import { buildPage } from '../http/upstream-search.ts'
import { UPSTREAM_PAGES } from '../limits.ts'
import type { PageCursor } from '../paging.ts'
import { createContentCheck } from '../read/access.ts'
import { readLast } from '../read/read-version.ts'
import { PAGE_SIZE } from './check-page.ts'
import { END, readLinks } from './continuation.ts'
import { gather, type UpstreamItems } from './gather.ts'
import { findForPolicy } from './membership.ts'
import { setPageSize } from './plan.ts'
import { requestPage } from './send-search.ts'

/** The resource, for the history of one. */
interface Owner {
  readonly type: string
  readonly id: string
}

/**
 * Composes a page of the versions that the caller may see: the upstream's own pages would reveal resources of which the
 * caller may see no version. No page is short because of versions that are left out; where too many have to be checked, the
 * request fails.
 */
export async function findHistory(
  context: GatewayContext,
  request: FhirRequest<History>,
  query: HistoryQuery,
  from: PageCursor | undefined,
): Promise<HistoryPage | Failure> {
  const { interaction } = request
  const of = interaction.kind === 'history-instance' ? interaction : undefined
  const params = [...dropFormat(setPageSize(query)), ...sinceBeginning(context, query)]
  const first = `${getPath(interaction)}?${buildQuery(params, context.urls)}`
  const { count } = query
  const page = await gather(from, count, [
    ({ link }) => fetchVersions(context, request, link === '' ? first : link, of),
  ])
  if (isFailure(page)) return page
  const { items: versions, links, extent } = page
  const isEndless = extent === 'endless'
  const isSeen = from !== undefined || versions.length > 0 || (links.size > 0 && !isEndless)
  if (!isSeen && (of || !isEndless)) return { versions: [], total: 0, cursors: new Map(), isNothing: true }
  if (isEndless && versions.length < count) return failTooCostly(UPSTREAM_PAGES * PAGE_SIZE)
  const total = extent === 'whole' && count > 0 ? versions.length : undefined
  return { versions, total, cursors: count > 0 ? links : new Map(), isNothing: false }
}

/** The end of a history is found only if the upstream does not count its versions (`cachedHistories`). */
function sinceBeginning({ profile }: GatewayContext, { used }: HistoryQuery): Params {
  const isLimited = used.some(([name]) => name === '_since' || name === '_at')
  return profile().cachedHistories && !isLimited ? [['_since', '1900-01-01T00:00:00Z']] : []
}

/** An absent history takes as long as one of which the caller may see nothing. */
async function fetchVersions(
  context: GatewayContext,
  request: FhirRequest,
  link: string,
  of: Owner | undefined,
): Promise<UpstreamItems<HistoryEntry> | Failure> {
  const response = await requestPage(context, request, buildPage(request, link))
  if (isFailure(response) && isAbsent(response)) {
    const check = of && (await createContentCheck(context, request, [{ resourceType: of.type }], of.id))
    return isFailure(check) ? check : { items: [], continuation: END }
  }
  if (isFailure(response)) return response
  const links = readLinks(context, { bundle: response.bundle, path: link })
  if (isFailure(links)) return links
  const items = await findVisibleVersions(context, request, response.entries, of)
  if (isFailure(items)) return items
  const next = links.get('next')
  return { items, continuation: next ? { kind: 'next', cursor: next } : END }
}

function isAbsent(failure: Failure): boolean {
  return failure.reason === 'upstream-declined' && (failure.status === 404 || failure.status === 410)
}

/** The current content of resources, by `Type/id`; of a deleted one, its last content. */
async function findCurrentContents(
  context: GatewayContext,
  request: FhirRequest,
  resources: readonly { readonly type: string; readonly id: string }[],
): Promise<ReadonlyMap<string, Resource> | Failure> {
  const contents = new Map<string, Resource>()
  for (const [type, some] of Map.groupBy(resources, it => it.type)) {
    const ids = [...new Set(some.map(it => it.id))]
    for (const few of chunk(ids, IDS_AT_ONCE)) {
      const current = await findForPolicy(context, request, type, [['_id', few.join()]], few.length)
      if (isFailure(current)) return current
      for (const it of current) contents.set(`${type}/${it.id}`, it)
    }
    for (const id of ids) {
      const last = contents.has(`${type}/${id}`) ? undefined : await readLast(context, request, type, id)
      if (isFailure(last)) return last
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
  readonly text: string | undefined
  readonly request: Readonly<Record<string, unknown>>
  readonly response: Readonly<Record<string, unknown>>
}

/** The entries of a history that may be seen, as entries of our own. */
async function findVisibleVersions(
  context: GatewayContext,
  request: FhirRequest,
  entries: readonly BundleEntry[] | undefined,
  of: Owner | undefined,
): Promise<readonly HistoryEntry[] | Failure> {
  if (!entries) return failBroken('it did not answer a history with a Bundle')
  const versions = parseVersions(entries, context.baseUrl)
  if (isFailure(versions)) return versions
  const contents = await findContents(context, request, versions)
  if (isFailure(contents)) return contents
  const check = await createContentCheck(context, request, [...contents.values()], of?.id)
  if (isFailure(check)) return check
  const within = versions.filter(version => {
    const content = contents.get(version)
    return content && check.allows(of ? 'r' : 's', content)
  })
  // The API has checked the current version of a single resource.
  const shown = of ? within : await filterByCurrentContent(context, request, within)
  return isFailure(shown) ? shown : shown.map(version => toEntry(context, version, contents.get(version)))
}

/** The versions whose resource is within the access in its current version too. */
async function filterByCurrentContent(
  context: GatewayContext,
  request: FhirRequest,
  versions: readonly Version[],
): Promise<readonly Version[] | Failure> {
  const isLimited = ({ type }: Version) => request.access.filterFor(type, 's') !== 'everything'
  if (context.versionAccess === 'version' || !versions.some(isLimited)) return versions
  const contents = await findCurrentContents(context, request, versions.filter(isLimited))
  if (isFailure(contents)) return contents
  const check = await createContentCheck(context, request, [...contents.values()])
  if (isFailure(check)) return check
  return versions.filter(version => {
    const content = contents.get(`${version.type}/${version.id}`)
    return !isLimited(version) || (content !== undefined && check.allows('s', content))
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
      if (isFailure(last)) return last
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

function parseVersions(entries: readonly BundleEntry[], baseUrl: string): readonly Version[] | Failure {
  const versions: Version[] = []
  for (const entry of entries) {
    const resource = parseEntry(entry)
    if (isFailure(resource)) return resource
    const request = isRecord(entry.request) ? entry.request : {}
    const response = isRecord(entry.response) ? entry.response : {}
    const of = resource
      ? getIdentity(resource)
      : findIdentity(baseUrl, entry.fullUrl, request.url, response.location)
    if (of) versions.push({ ...of, resource, text: entry.text, request, response })
  }
  return versions
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

function toEntry(
  { baseUrl }: GatewayContext,
  { type, id, resource, text, request, response }: Version,
  content: Resource | undefined,
): HistoryEntry {
  const { status, etag, lastModified } = response
  return {
    type,
    id,
    text: resource && text,
    method: METHODS.find(it => it === request.method) ?? (resource ? 'PUT' : 'DELETE'),
    status:
      typeof status === 'string' && /^\d{3}\b/.test(status)
        ? status.slice(0, 32)
        : resource
          ? '200 OK'
          : '204 No Content',
    etag: typeof etag === 'string' ? etag : undefined,
    lastModified: typeof lastModified === 'string' ? lastModified : undefined,
    findPatients: () => content && [...findContentPatients(content, baseUrl)],
  }
}
