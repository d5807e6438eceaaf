import { exactText, isProblem } from '../../../fhir/index.ts'
import type { Call, Context } from '../call.ts'
import { UPSTREAM_PAGES } from '../limits.ts'
import { type Problem, tooCostly } from '../problem.ts'
import type { UpstreamRequest } from '../upstream/exchange.ts'
import { getting } from '../upstream/request-of.ts'
import { fetchPage, type Page, type PageJudge, type Released, type Spot } from './fetch-page.ts'
import { gather } from './gather.ts'
import { AT_ONCE } from './plan.ts'

export interface Scanned {
  /** For the begin. */
  readonly request: UpstreamRequest
  readonly judge: PageJudge
  readonly count: number
  readonly from: Spot | undefined
}

/** A page of a search that the upstream could not be told all of, made here. */
export async function scan(
  context: Context,
  call: Call,
  { request, judge, count, from }: Scanned,
): Promise<Page | Problem> {
  const candidates: Released[] = []
  let isTold = true
  const fetch = async (link: string) => {
    const part = await fetchPage(context, call, link === '' ? request : getting(call, link), judge)
    if (isProblem(part)) return part
    for (const it of part.includes) candidates.push(it)
    // It counts more than it shows, and does not say where the rest is.
    if (!part.isWhole && part.links.size === 0) isTold = false
    return { items: part.matches, next: part.links.get('next') }
  }
  const page = await gather(from, count, fetch, undefined, ({ exact }) => exactText(exact).length)
  if (isProblem(page)) return page
  if (page.isEndless) return tooCostly(UPSTREAM_PAGES * AT_ONCE)
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
