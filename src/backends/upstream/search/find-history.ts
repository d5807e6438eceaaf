import { isProblem } from '../../../fhir/index.ts'
import { type HistoryEntry, isFailure } from '../../../fhir-api/index.ts'
import type { Permission } from '../../../smart/index.ts'
import { checkContent } from '../access.ts'
import type { Call, Context } from '../context.ts'
import { buildGet } from '../http/build-request.ts'
import { toFailure } from '../http/failure.ts'
import { UPSTREAM_PAGES } from '../limits.ts'
import { failTooCostly, type Problem } from '../problem.ts'
import { linksIn, type PageCursor } from './fetch-page.ts'
import { type Gathered, gather, type Part } from './gather.ts'
import { AT_ONCE } from './plan.ts'
import { requestPage } from './request-page.ts'
import { findVisibleVersions } from './versions.ts'

export interface HistoryRequest {
  /** The upstream's own address of the begin. */
  readonly first: string
  readonly count: number
  readonly from: PageCursor | undefined
  /** Whose versions, where they are of one resource. */
  readonly of?: { readonly type: string; readonly id: string }
}

/**
 * A page made here of the versions that may be seen: by the upstream's own pages one could tell that there is a resource
 * of which none may. `nothing` where there is none to show. No page is short of what was left out, by which one could
 * count it: where too much has to be looked through, less must be asked for.
 */
export async function scanVersions(
  context: Context,
  call: Call,
  permission: Permission,
  { first, count, from, of }: HistoryRequest,
): Promise<Gathered<HistoryEntry> | 'nothing' | Problem> {
  const page = await gather(from, count, link =>
    fetchVersions(context, call, permission, link === '' ? first : link, of),
  )
  if (isProblem(page)) return page
  const { items, links, isEndless } = page
  const isSeen = from !== undefined || items.length > 0 || (links.size > 0 && !isEndless)
  if (!isSeen && (of || !isEndless)) return 'nothing'
  if (isEndless && items.length < count) return failTooCostly(UPSTREAM_PAGES * AT_ONCE)
  return count > 0 ? page : { ...page, links: new Map(), isWhole: false }
}

/** Asks for a page of a history. That the upstream has none takes as long as that none may be seen. */
async function fetchVersions(
  context: Context,
  call: Call,
  permission: Permission,
  link: string,
  of: HistoryRequest['of'],
): Promise<Part<HistoryEntry> | Problem> {
  const asked = await requestPage(context, call, buildGet(call, link))
  if (isProblem(asked)) return asked
  if (asked.kind === 'declined' && (asked.answer.status === 404 || asked.answer.status === 410)) {
    const judge = of && (await checkContent(context, call, [{ resourceType: of.type }], of.id))
    return judge && isProblem(judge) ? judge : { items: [], next: undefined }
  }
  if (asked.kind === 'declined') return toFailure(asked.answer, call.access)
  const links = linksIn(context, asked.bundle)
  if (isProblem(links)) return links
  if (asked.kind === 'unjudged') return { items: [], next: links.get('next') }
  const items = await findVisibleVersions(context, call, permission, asked.bundle, asked.text, of)
  return isFailure(items) ? items : { items, next: links.get('next') }
}
