import { isProblem } from '../../fhir/index.ts'
import type { Letter } from '../../scope/index.ts'
import type { Call, Context } from '../call.ts'
import { judgeOf } from '../judge/judge.ts'
import type { Problem } from '../problem.ts'
import { declined } from '../upstream/declined.ts'
import { getting } from '../upstream/request-of.ts'
import { resourceIn } from '../upstream/resource-in.ts'
import { PAGES } from './every-page.ts'
import { type Links, linksIn, type Spot } from './fetch-page.ts'
import { shownVersions } from './versions.ts'

/** A page of a history as far as it may be seen. */
export interface Versions {
  readonly entry: readonly object[]
  readonly links: Links
  /** Whether there is nothing beside this page. */
  readonly isWhole: boolean
}

/** Asks for a page of a history; `nothing` where the upstream has none. */
async function fetchVersions(
  context: Context,
  call: Call,
  letter: Letter,
  link: string,
  standIn?: string,
): Promise<Versions | 'nothing' | Problem> {
  const answer = await context.upstream.ask(getting(call, link))
  if (isProblem(answer)) return answer
  if (answer.status === 404 || answer.status === 410) return 'nothing'
  if (answer.status !== 200) return declined(answer, call.access)
  const bundle = resourceIn(answer)
  if (isProblem(bundle)) return bundle
  const links = linksIn(context, bundle)
  if (isProblem(links)) return links
  const entry = await shownVersions(context, call, letter, bundle, answer.text, standIn)
  if (isProblem(entry)) return entry as Problem
  return { entry, links, isWhole: links.size === 0 }
}

export interface VersionsAsked {
  /** The upstream's own address of the begin. */
  readonly first: string
  readonly count: number
  readonly from: Spot | undefined
  /** Whose versions, where they are of one resource. */
  readonly of?: { readonly type: string; readonly id: string }
}

/**
 * A page made here of the versions that may be seen: by the upstream's own pages one could count the rest, and tell that
 * there is a resource of which none may. `nothing` where there is none to show; that there are none at all takes as long.
 * Of all resources it may be looked through for long: then the page is short, and the next one goes on.
 */
export async function scanVersions(
  context: Context,
  call: Call,
  letter: Letter,
  { first, count, from, of }: VersionsAsked,
): Promise<Versions | 'nothing' | Problem> {
  const entry: object[] = []
  let isSeen = from !== undefined
  let spot = from ?? { link: '' }
  for (let pages = 1; ; pages++) {
    const { link, skip = 0 } = spot
    const page = await fetchVersions(context, call, letter, link === '' ? first : link, of?.id)
    if (page === 'nothing') {
      const asked = of && (await judgeOf(context, call, [{ resourceType: of.type }], of.id))
      if (asked && isProblem(asked)) return asked
      break
    }
    if (isProblem(page)) return page
    const seen = page.entry.slice(skip)
    const room = count - entry.length
    entry.push(...seen.slice(0, room))
    isSeen ||= seen.length > 0
    if (seen.length > room) return pageOf(count === 0 ? undefined : { link, skip: skip + room })
    const next = page.links.get('next')
    if (!next) break
    if (pages === PAGES) return isSeen || !of ? pageOf(next) : 'nothing'
    spot = next
  }
  return isSeen ? pageOf(undefined) : 'nothing'

  function pageOf(next: Spot | undefined): Versions {
    return {
      entry,
      links: new Map(next && [['next', next]]),
      isWhole: next === undefined && from === undefined && count > 0,
    }
  }
}
