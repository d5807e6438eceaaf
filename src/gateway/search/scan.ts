import { isProblem } from '../../fhir/index.ts'
import type { Call, Context } from '../call.ts'
import { type Problem, tooCostly } from '../problem.ts'
import { getting } from '../upstream/request-of.ts'
import { PAGES } from './every-page.ts'
import { fetchPage, type Page, type Released, type Spot } from './fetch-page.ts'
import { AT_ONCE, type Plan } from './plan.ts'

/**
 * A page made here, of what the caller may see, where the upstream could not be told all of it: by its own pages one
 * could count what is left out. There is a next page if there is something on it (docs/decisions/0136).
 */
export async function scan(
  context: Context,
  call: Call,
  { request: first, query, judge }: Plan,
  from: Spot = { link: '' },
): Promise<Page | Problem> {
  const matches: Released[] = []
  const candidates: Released[] = []
  let spot: Spot | undefined = from
  for (let pages = 0; first && spot && pages < PAGES; pages++) {
    const { link, skip = 0 }: Spot = spot
    const page = await fetchPage(context, call, link === '' ? first : getting(call, link), judge)
    if (isProblem(page)) return page
    const seen = page.matches.slice(skip)
    const room = query.count - matches.length
    matches.push(...seen.slice(0, room))
    // One by one: so many as an upstream may send are too many arguments.
    for (const it of page.includes) candidates.push(it)
    if (seen.length > room) return pageOf({ link, skip: skip + room })
    spot = page.links.get('next')
  }
  return spot && first ? tooCostly(PAGES * AT_ONCE) : pageOf(undefined)

  function pageOf(next: Spot | undefined): Page {
    return {
      matches,
      includes: judge.includes(matches, candidates),
      links: new Map(next && [['next', next]]),
      isWhole: next === undefined && from.link === '' && from.skip === undefined,
    }
  }
}
