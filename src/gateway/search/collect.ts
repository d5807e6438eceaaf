import { isProblem, type Params } from '../../fhir/index.ts'
import type { Call, Context } from '../call.ts'
import { type Problem, tooCostly } from '../problem.ts'
import { getting } from '../upstream/request-of.ts'
import { resolveChains } from './chains.ts'
import { fetchPage, type Released } from './fetch-page.ts'
import { planSearch, type Search } from './plan.ts'

const PAGES = 50

/** All that a search finds within reach, page by page; a problem when it is more than `most`. */
export async function collect(
  context: Context,
  call: Call<Search>,
  most: number,
): Promise<readonly Released[] | Problem> {
  const resolved = await resolveChains(context, call)
  if (resolved === 'nothing') return []
  if (isProblem(resolved)) return resolved
  const plan = await planSearch(context, resolved)
  if (isProblem(plan)) return plan
  const found: Released[] = []
  let { request } = plan
  for (let pages = 0; request && pages < PAGES; pages++) {
    const page = await fetchPage(context, call, request, plan.judge)
    if (isProblem(page)) return page
    found.push(...page.matches)
    if (found.length > most) break
    const next = page.links.get('next')
    if (!next) return found
    request = getting(call, next.link)
  }
  return request ? tooCostly(most) : found
}

/** A search of one type for the gateway's own use, as the caller would be answered. */
export function searchFor(call: Call, type: string, params: Params): Call<Search> {
  return {
    ...call,
    interaction: { kind: 'search-type', type, params },
    // An ignored parameter would make a condition match more.
    preferences: { ...call.preferences, lenient: false },
  }
}
