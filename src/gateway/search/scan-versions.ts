import { isProblem } from '../../fhir/index.ts'
import type { Letter } from '../../scope/index.ts'
import type { Call, Context } from '../call.ts'
import { judgeOf } from '../judge/judge.ts'
import { UPSTREAM_PAGES } from '../limits.ts'
import { type Problem, pageProblem, tooCostly } from '../problem.ts'
import { declined } from '../upstream/declined.ts'
import { getting } from '../upstream/request-of.ts'
import { resourceIn } from '../upstream/resource-in.ts'
import { linksIn, type Spot } from './fetch-page.ts'
import { type Gathered, gather, type Part } from './gather.ts'
import { AT_ONCE } from './plan.ts'
import { shownVersions } from './versions.ts'

export interface VersionsAsked {
  /** The upstream's own address of the begin. */
  readonly first: string
  readonly count: number
  readonly from: Spot | undefined
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
  letter: Letter,
  { first, count, from, of }: VersionsAsked,
): Promise<Gathered<object> | 'nothing' | Problem> {
  const page = await gather(from, count, link =>
    fetchVersions(context, call, letter, link === '' ? first : link, of),
  )
  if (isProblem(page)) return page
  const { items, links, isEndless } = page
  const isSeen = from !== undefined || items.length > 0 || (links.size > 0 && !isEndless)
  if (!isSeen && (of || !isEndless)) return 'nothing'
  if (isEndless && items.length < count) return tooCostly(UPSTREAM_PAGES * AT_ONCE)
  return count > 0 ? page : { ...page, links: new Map(), isWhole: false }
}

/** Asks for a page of a history. That the upstream has none takes as long as that none may be seen. */
async function fetchVersions(
  context: Context,
  call: Call,
  letter: Letter,
  link: string,
  of: VersionsAsked['of'],
): Promise<Part<object> | Problem> {
  const answer = await context.upstream.ask(getting(call, link))
  if (isProblem(answer)) return pageProblem(answer)
  if (answer.status === 404 || answer.status === 410) {
    const judge = of && (await judgeOf(context, call, [{ resourceType: of.type }], of.id))
    return judge && isProblem(judge) ? judge : { items: [], next: undefined }
  }
  if (answer.status !== 200) return declined(answer, call.access)
  const bundle = resourceIn(answer)
  if (isProblem(bundle)) return pageProblem(bundle)
  const links = linksIn(context, bundle)
  if (isProblem(links)) return links
  const items = await shownVersions(context, call, letter, bundle, answer.text, of)
  return isProblem(items)
    ? (items as Problem)
    : { items: items as readonly object[], next: links.get('next') }
}
