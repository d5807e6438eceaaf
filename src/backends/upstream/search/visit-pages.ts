import { isProblem } from '../../../fhir/index.ts'
import type { Call, Context } from '../context.ts'
import { buildGet } from '../http/build-request.ts'
import type { UpstreamRequest } from '../http/exchange.ts'
import { UPSTREAM_PAGES } from '../limits.ts'
import { failTooCostly, type Problem } from '../problem.ts'
import { fetchPage, type PageCheck, type UpstreamPage } from './fetch-page.ts'

/** Takes all that a search finds and may be seen, page by page, and counts it; a problem when it is more than `most`. */
export async function visitPages(
  context: Context,
  call: Call,
  first: UpstreamRequest,
  may: PageCheck,
  most: number,
  take: (page: UpstreamPage) => void,
): Promise<number | Problem> {
  let count = 0
  let request = first
  for (let pages = 0; pages < UPSTREAM_PAGES; pages++) {
    const page = await fetchPage(context, call, request, may)
    if (isProblem(page)) return page
    count += page.matches.length
    if (count > most) break
    take(page)
    const next = page.links.get('next')
    if (!next) return count
    request = buildGet(call, next.link)
  }
  return failTooCostly(most)
}
