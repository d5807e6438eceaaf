import { formatExact, isProblem } from '../../../fhir/index.ts'
import type { Call, Context } from '../call.ts'
import { UPSTREAM_PAGES } from '../limits.ts'
import { failTooCostly, type Problem } from '../problem.ts'
import type { UpstreamRequest } from '../upstream/exchange.ts'
import { buildGet } from '../upstream/request-of.ts'
import {
  type CheckedResource,
  fetchPage,
  type PageCheck,
  type PageCursor,
  type UpstreamPage,
} from './fetch-page.ts'
import { gather } from './gather.ts'
import { AT_ONCE } from './plan.ts'

export interface ScanOptions {
  /** For the begin. */
  readonly request: UpstreamRequest
  readonly check: PageCheck
  readonly count: number
  readonly from: PageCursor | undefined
}

/** A page of a search that the upstream could not be told all of, made here. */
export async function scan(
  context: Context,
  call: Call,
  { request, check: judge, count, from }: ScanOptions,
): Promise<UpstreamPage | Problem> {
  const candidates: CheckedResource[] = []
  let isTold = true
  const fetch = async (link: string) => {
    const part = await fetchPage(context, call, link === '' ? request : buildGet(call, link), judge)
    if (isProblem(part)) return part
    for (const it of part.includes) candidates.push(it)
    // It counts more than it shows, and does not say where the rest is.
    if (!part.isWhole && part.links.size === 0) isTold = false
    return { items: part.matches, next: part.links.get('next') }
  }
  const page = await gather(from, count, fetch, undefined, ({ exact }) => formatExact(exact).length)
  if (isProblem(page)) return page
  if (page.isEndless) return failTooCostly(UPSTREAM_PAGES * AT_ONCE)
  const { items: matches, links, isWhole } = page
  return {
    matches,
    strays: 0,
    lost: 0,
    includes: judge.includes(matches, candidates),
    links,
    isWhole: isWhole && isTold,
  }
}
