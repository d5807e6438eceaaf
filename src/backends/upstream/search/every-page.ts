import { isProblem } from '../../../fhir/index.ts'
import type { Call, Context } from '../call.ts'
import { UPSTREAM_PAGES } from '../limits.ts'
import { type Problem, tooCostly } from '../problem.ts'
import type { UpstreamRequest } from '../upstream/exchange.ts'
import { getting } from '../upstream/request-of.ts'
import { fetchPage, type Page, type PageJudge } from './fetch-page.ts'

/** Takes all that a search finds and may be seen, page by page, and counts it; a problem when it is more than `most`. */
export async function everyPage(
  context: Context,
  call: Call,
  first: UpstreamRequest,
  may: PageJudge,
  most: number,
  take: (page: Page) => void,
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
    request = getting(call, next.link)
  }
  return tooCostly(most)
}
