import { hash } from 'node:crypto'
import {
  careRangeIn,
  type DateRange,
  type EverythingType,
  everythingProblem,
  fail,
  isInCareRange,
  isProblem,
  isResourceType,
  type Params,
  parseHistory,
  postedParams,
  type Resource,
  resourceTypes,
} from '../../../fhir/index.ts'
import type { Answer } from '../answer.ts'
import type { Call, Context } from '../call.ts'
import { find } from '../judge/find.ts'
import { seesAll } from '../judge/sees-all.ts'
import { INCLUDES_REMEMBERED, UPSTREAM_PAGES } from '../limits.ts'
import { type Problem, tooCostly } from '../problem.ts'
import { bundleText } from '../search/bundle-text.ts'
import { fetchPage, type PageJudge, type Released, type Spot } from '../search/fetch-page.ts'
import { gather, type Part } from '../search/gather.ts'
import { linksOf } from '../search/links.ts'
import { isReached } from '../search/narrow-includes.ts'
import { PAGE } from '../search/pages.ts'
import { AT_ONCE, atOnce } from '../search/plan.ts'
import { turnPage } from '../search/turn-page.ts'
import { getting, pathOf, queryOf } from '../upstream/request-of.ts'
import type { Operation } from './operation.ts'

/** `$everything` of a Patient or an Encounter: of what the upstream gives, what the caller may search or read. */
export function everythingOf(type: EverythingType) {
  return async (context: Context, begun: Call<Operation>): Promise<Answer | Problem> => {
    const asked = withPosted(begun)
    if (isProblem(asked)) return asked
    const path = pathOf(asked.interaction)
    const turned = turnPage(context, asked, path)
    if (isProblem(turned)) return turned
    const { call, spot } = turned
    const { id = '', params } = call.interaction
    const found = await find(context, call, 'r', type, id)
    if (isProblem(found)) return found
    if (found.kind === 'deleted') return fail({ problem: 'gone', type, id })
    const wanted = wantedBy(call, type, params)
    if (isProblem(wanted)) return wanted
    return fetchRecord(context, call, path, spot, wanted)
  }
}

/** What is asked of the upstream, and what of its response is wanted. */
export interface Wanted {
  /** How much the caller wants on a page. */
  readonly count: number
  readonly sent: Params
  /** The range that a date of care must be in. Not every upstream heeds `start` and `end`. */
  readonly care?: DateRange | undefined
  /** The types that are wanted, where they are named. Not every upstream heeds `_type`. */
  readonly types?: ReadonlySet<string> | undefined
}

/** A searchset of what the upstream gives for an operation, every resource of it judged by its content. */
export async function fetchRecord(
  context: Context,
  call: Call<Operation>,
  path: string,
  spot: Spot | undefined,
  wanted: Wanted,
): Promise<Answer | Problem> {
  const { params } = call.interaction
  const first = `${path}?${queryOf(wanted.sent, context.addresses)}`
  const includes = includesShown(spot?.shown ?? [])
  const fetch = (link: string) => fetchEntries(context, call, link === '' ? first : link, wanted)
  const page = await gather(spot, wanted.count, fetch, includes)
  if (isProblem(page)) return page
  if (page.isEndless) return tooCostly(UPSTREAM_PAGES * AT_ONCE)
  const { items: entry, isWhole } = page
  const links = new Map([...page.links].map(([to, it]) => [to, { ...it, shown: includes.keys() }]))
  return {
    status: 200,
    headers: {},
    body: bundleText({
      type: 'searchset',
      total: isWhole ? entry.filter(it => it.search.mode === 'match').length : undefined,
      link: linksOf(context, call, path, { params, used: params.filter(([name]) => name !== PAGE) }, links),
      entry,
    }),
  }
}

/** What of it may be seen, however the upstream came to it. */
export const SEEN: PageJudge = {
  isMatch: (it, judge) => judge.allows('s', it) || judge.allows('r', it),
  isInclude: (it, judge) => judge.allows('r', it),
  includes: (_matches, candidates) => candidates,
}

async function fetchEntries(
  context: Context,
  call: Call,
  link: string,
  { care, types }: Wanted,
): Promise<Part<Entry> | Problem> {
  const page = await fetchPage(context, call, getting(call, link), SEEN)
  if (isProblem(page)) return page
  const entryOf =
    (mode: 'match' | 'include') =>
    ({ resource, exact }: Released): Entry => ({
      fullUrl: `${context.baseUrl}/${resource.resourceType}/${resource.id}`,
      resource: exact,
      search: { mode },
    })
  const isWanted = ({ resource }: Released) =>
    (!care || isInCareRange(resource, care, context.baseUrl)) && (!types || types.has(resource.resourceType))
  return {
    items: [
      ...page.matches.filter(isWanted).map(entryOf('match')),
      ...page.includes.filter(isWanted).map(entryOf('include')),
    ],
    next: page.links.get('next'),
  }
}

/** Upstreams may repeat what they include on every page: each is shown once, as far as a link can remember. */
function includesShown(before: readonly string[]) {
  const keys = new Set(before)
  const keyOf = ({ fullUrl }: Entry) => hash('sha256', fullUrl, 'base64url').slice(0, 10)
  const isInclude = ({ search }: Entry) => search.mode === 'include'
  return {
    has: (entry: Entry) => isInclude(entry) && keys.has(keyOf(entry)),
    add(entry: Entry) {
      if (isInclude(entry) && keys.size < INCLUDES_REMEMBERED) keys.add(keyOf(entry))
    },
    keys: () => [...keys],
  }
}

interface Entry {
  readonly fullUrl: string
  readonly resource: Resource
  readonly search: { readonly mode: 'match' | 'include' }
}

/** The parameters of the body are as those of the address: judged, sent and kept in the links of pages. */
export function withPosted(call: Call<Operation>): Call<Operation> | Problem {
  const posted = postedParams(call.body)
  if (isProblem(posted)) return posted
  const params = [...call.interaction.params, ...posted]
  return { ...call, interaction: { ...call.interaction, params } }
}

function wantedBy({ access }: Call, of: EverythingType, params: Params): Wanted | Problem {
  const problem = everythingProblem(of, params)
  if (problem) return problem
  const care = careRangeIn(params)
  if (care && isProblem(care)) return care
  const paged = parseHistory(
    params.filter(([name]) => name === '_since' || name === '_count'),
    false,
  )
  if (isProblem(paged)) return paged
  const asked = params.filter(([name]) => name === '_type').flatMap(([, value]) => value.split(','))
  if (!asked.every(isResourceType))
    return fail({
      problem: 'bad-search',
      code: 'invalid',
      text: 'Cannot read _type: expected resource types of R4',
    })
  const { count } = paged
  const sent = [...params.filter(([name]) => name === 'start' || name === 'end'), ...atOnce(paged)]
  if (asked.length === 0 && seesAll(access)) return { count, sent, care }
  const types = (asked.length > 0 ? asked : resourceTypes).filter(
    type => isReached(access, type, 's') || isReached(access, type, 'r'),
  )
  const named = asked.length > 0 ? new Set(asked) : undefined
  return { count, sent: [...sent, ['_type', types.join(',')]], care, types: named }
}
