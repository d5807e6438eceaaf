import type { HistoryQuery } from '../../../fhir/index.ts'
import {
  type Failure,
  type FhirRequest,
  getPath,
  type History,
  type HistoryEntry,
  type HistoryPage,
  isFailure,
} from '../../../fhir-api/index.ts'
import type { Permission } from '../../../smart/index.ts'
import { checkContent } from '../access.ts'
import type { GatewayContext } from '../context.ts'
import { buildGet, buildQuery } from '../http/build-request.ts'
import { failTooCostly, toFailure } from '../http/failure.ts'
import { UPSTREAM_PAGES } from '../limits.ts'
import { dropFormat } from './find-page.ts'
import { type Gathered, gather, type UpstreamItems } from './gather.ts'
import type { PageCursor } from './page-links.ts'
import { PAGE_SIZE, readLinks } from './pages.ts'
import { setPageSize } from './plan.ts'
import { requestPage } from './request-page.ts'
import { findVisibleVersions } from './versions.ts'

export interface HistoryRequest {
  /** The path of the first page. */
  readonly first: string
  readonly count: number
  readonly from: PageCursor | undefined
  /** The resource, for the history of one. */
  readonly of?: { readonly type: string; readonly id: string }
}

/**
 * Composes a page of the versions that the caller may see: the upstream's own pages would reveal resources of which the
 * caller may see no version. `nothing` where there is no version to show. No page is short because of versions that are
 * left out; where too many have to be checked, the request fails.
 */
export async function scanVersions(
  context: GatewayContext,
  request: FhirRequest,
  permission: Permission,
  { first, count, from, of }: HistoryRequest,
): Promise<Gathered<HistoryEntry> | 'nothing' | Failure> {
  const page = await gather(from, count, link =>
    fetchVersions(context, request, permission, link === '' ? first : link, of),
  )
  if (isFailure(page)) return page
  const { items, links, isEndless } = page
  const isSeen = from !== undefined || items.length > 0 || (links.size > 0 && !isEndless)
  if (!isSeen && (of || !isEndless)) return 'nothing'
  if (isEndless && items.length < count) return failTooCostly(UPSTREAM_PAGES * PAGE_SIZE)
  return count > 0 ? page : { ...page, links: new Map(), isWhole: false }
}

/** An absent history takes as long as one of which the caller may see nothing. */
async function fetchVersions(
  context: GatewayContext,
  request: FhirRequest,
  permission: Permission,
  link: string,
  of: HistoryRequest['of'],
): Promise<UpstreamItems<HistoryEntry> | Failure> {
  const response = await requestPage(context, request, buildGet(request, link))
  if (isFailure(response)) return response
  if (
    response.kind === 'declined' &&
    (response.response.status === 404 || response.response.status === 410)
  ) {
    const check = of && (await checkContent(context, request, [{ resourceType: of.type }], of.id))
    return check && isFailure(check) ? check : { items: [], next: undefined }
  }
  if (response.kind === 'declined') return toFailure(response.response, request)
  const links = readLinks(context, response.bundle)
  if (isFailure(links)) return links
  if (response.kind === 'unchecked') return { items: [], next: links.get('next') }
  const items = await findVisibleVersions(context, request, permission, response.bundle, response.text, of)
  return isFailure(items) ? items : { items, next: links.get('next') }
}

/** A page of a history whose response has to be inspected. */
export async function findHistory(
  context: GatewayContext,
  request: FhirRequest<History>,
  query: HistoryQuery,
  from: PageCursor | undefined,
): Promise<HistoryPage | Failure> {
  const { interaction } = request
  const isOfOne = interaction.kind === 'history-instance'
  const page = await scanVersions(context, request, isOfOne ? 'r' : 's', {
    first: `${getPath(interaction)}?${buildQuery(dropFormat(setPageSize(query)), context.urls)}`,
    ...{ count: query.count, from },
    ...(isOfOne && { of: { type: interaction.type, id: interaction.id } }),
  })
  if (page === 'nothing') return { versions: [], total: 0, cursors: new Map(), isNothing: true }
  if (isFailure(page)) return page
  const { items: versions, links: cursors, isWhole } = page
  return { versions, total: isWhole ? versions.length : undefined, cursors, isNothing: false }
}
