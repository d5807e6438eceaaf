import { fail, isProblem, isRecord, isResource, type Resource, toExact } from '../../../fhir/index.ts'
import type { AccessCheck } from '../../../fhir-api/index.ts'
import { createTurns } from '../../../fhir-api/index.ts'
import { checkContent } from '../access.ts'
import type { Call, Context } from '../context.ts'
import type { UpstreamRequest } from '../http/exchange.ts'
import { toFailure } from '../http/failure.ts'
import type { Problem } from '../problem.ts'
import { requestPage } from './request-page.ts'

/** A resource that is released, and the same with all digits of its decimals. */
export interface CheckedResource {
  readonly resource: Resource
  readonly exact: Resource
}

/** What may be in a page. */
export interface PageCheck {
  /** Whether a match has what was searched for, as far as can be told: an upstream may ignore a parameter. */
  isAsked?(resource: Resource): boolean
  isMatch(resource: Resource, judge: AccessCheck): boolean
  isInclude(resource: Resource, judge: AccessCheck): boolean
  /** Of what may be included, what is. */
  includes(
    matches: readonly CheckedResource[],
    candidates: readonly CheckedResource[],
  ): readonly CheckedResource[]
}

/** A page of a search as far as it may be seen. */
export interface UpstreamPage {
  readonly matches: readonly CheckedResource[]
  readonly includes: readonly CheckedResource[]
  /** Where there are other pages. */
  readonly links: Links
  /** How many matches the caller may see, and yet did not ask for. */
  readonly strays: number
  /** How many matches of the upstream's are left out: by what is missing from a page, one could count them. */
  readonly lost: number
  /** Whether there is nothing beside this page, as far as the upstream tells. */
  readonly isWhole: boolean
}

/** A place in what the upstream has. */
export interface PageCursor {
  /** Its own link, below its base; empty for the begin. */
  readonly link: string
  /** How many of that page were shown already. */
  readonly skip?: number
  /** Which included resources pages before this one have shown (`keyOf` of each). */
  readonly shown?: readonly string[]
}

const RELATIONS = ['next', 'previous', 'first', 'last'] as const
export type Relation = (typeof RELATIONS)[number]
export type Links = ReadonlyMap<Relation, PageCursor>

/** Asks for a page and leaves out what the caller must not see. */
export async function fetchPage(
  context: Context,
  call: Call,
  request: UpstreamRequest,
  may: PageCheck,
): Promise<UpstreamPage | Problem> {
  const asked = await requestPage(context, call, request)
  if (isProblem(asked)) return asked
  if (asked.kind === 'declined') return toFailure(asked.answer, call.access)
  const { bundle } = asked
  const takeTurns = createTurns()
  const entries = entriesIn(bundle)
  if (!entries) return fail({ problem: 'upstream-broken', why: 'it did not answer a search with a Bundle' })
  const links = linksIn(context, bundle)
  if (isProblem(links)) return links
  if (asked.kind === 'unjudged')
    return { matches: [], includes: [], links, strays: 0, lost: 1, isWhole: isWhole(bundle, entries, links) }
  const judge = await checkContent(
    context,
    call,
    entries.flatMap(({ resource }) => (isResource(resource) ? [resource] : [])),
  )
  if (isProblem(judge)) return judge
  await takeTurns()
  const exact = entriesIn(toExact(bundle, asked.text) as Resource) ?? []
  await takeTurns()
  return { ...pick(entries, exact, may, judge), links, isWhole: isWhole(bundle, entries, links) }
}

interface Entry {
  readonly resource?: unknown
  readonly search?: unknown
}

function entriesIn(bundle: Resource): readonly Entry[] | undefined {
  const { resourceType, entry = [] } = bundle
  return resourceType === 'Bundle' && Array.isArray(entry) && entry.every(isRecord) ? entry : undefined
}

/** Not where it links to another page, nor where it counts more than it shows and does not say where the rest is. */
function isWhole({ total }: Resource, entries: readonly Entry[], links: Links): boolean {
  return (
    !links.has('next') && !links.has('previous') && !(typeof total === 'number' && total > entries.length)
  )
}

function pick(entries: readonly Entry[], exact: readonly Entry[], may: PageCheck, judge: AccessCheck) {
  const matches: CheckedResource[] = []
  const candidates: CheckedResource[] = []
  let strays = 0
  let lost = 0
  for (const [at, { resource, search }] of entries.entries()) {
    const twin = exact[at]?.resource
    if (!isResource(resource) || !isResource(twin)) continue
    const released = { resource, exact: twin }
    const mode = isRecord(search) ? search.mode : undefined
    const isMatch = mode !== 'include' && mode !== 'outcome' && may.isMatch(resource, judge)
    const isStray = isMatch && may.isAsked?.(resource) === false
    if (isStray) strays += 1
    if (isMatch && !isStray) matches.push(released)
    else {
      const isCandidate = mode !== 'match' && mode !== 'outcome' && may.isInclude(resource, judge)
      if (isCandidate) candidates.push(released)
      // `search.mode` is optional: what may have been a match counts as one.
      if (mode !== 'include' && mode !== 'outcome' && (isStray || !isCandidate)) lost += 1
    }
  }
  return { matches, strays, lost, includes: may.includes(matches, candidates) }
}

export function linksIn(context: Context, { link = [] }: Resource): Links | Problem {
  const links = new Map<Relation, PageCursor>()
  for (const it of Array.isArray(link) ? link.filter(isRecord) : []) {
    const relation = RELATIONS.find(
      known => known === it.relation || (known === 'previous' && it.relation === 'prev'),
    )
    if (!relation || typeof it.url !== 'string') continue
    // The text has our base already in the place of the upstream's own.
    const below = context.addresses.below(context.addresses.inward(it.url))
    if (below === undefined)
      return fail({ problem: 'upstream-broken', why: 'its paging links are not below its base' })
    links.set(relation, { link: below })
  }
  return links
}
