import { hash } from 'node:crypto'
import {
  type DateRange,
  formatExact,
  isInCareRange,
  isProblem,
  type Params,
  parseHistory,
  readCareRange,
  resourceTypes,
  type Shape,
} from '../../../fhir/index.ts'
import {
  type EverythingTarget,
  getPath,
  type Operation,
  type SearchPage,
  seesAll,
} from '../../../fhir-api/index.ts'
import type { Call, Context } from '../context.ts'
import { buildGet, buildQuery } from '../http/build-request.ts'
import { INCLUDES_REMEMBERED, UPSTREAM_PAGES } from '../limits.ts'
import { failTooCostly, type Problem } from '../problem.ts'
import { toEntry } from './entry.ts'
import { type CheckedResource, fetchPage, type PageCheck, type PageCursor } from './fetch-page.ts'
import { gather, type Part } from './gather.ts'
import { hasAccess } from './narrow-includes.ts'
import { AT_ONCE, withPageSize } from './plan.ts'

/** `$everything` as the upstream returns it, as far as the caller may search or read it. */
export async function findEverything(
  context: Context,
  call: Call<Operation>,
  of: EverythingTarget,
  spot: PageCursor | undefined,
): Promise<SearchPage | Problem> {
  const wanted = wantedBy(call, of)
  return isProblem(wanted) ? wanted : fetchRecord(context, call, spot, wanted)
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
  spot: PageCursor | undefined,
  wanted: Wanted,
): Promise<SearchPage | Problem> {
  const path = getPath(call.interaction)
  const first = `${path}?${buildQuery(wanted.sent, context.addresses)}`
  const includes = includesShown(spot?.shown ?? [])
  const fetch = (link: string) => fetchEntries(context, call, link === '' ? first : link, wanted)
  const sizeOf = ({ released }: Item) => formatExact(released.exact).length
  const page = await gather(spot, wanted.count, fetch, includes, sizeOf)
  if (isProblem(page)) return page
  if (page.isEndless) return failTooCostly(UPSTREAM_PAGES * AT_ONCE)
  const { items, isWhole } = page
  const pick = (mode: Item['mode']) => items.filter(it => it.mode === mode).map(it => toEntry(it.released))
  const matches = pick('match')
  return {
    ...{ matches, includes: pick('include'), used: call.interaction.params, shape: WHOLE },
    total: isWhole ? matches.length : undefined,
    cursors: new Map([...page.links].map(([to, it]) => [to, { ...it, shown: includes.keys() }])),
  }
}

const WHOLE: Shape = { summary: 'false', elements: [] }

/** What of it may be seen, however the upstream came to it. */
export const VISIBLE: PageCheck = {
  isMatch: (it, judge) => judge.allows('s', it) || judge.allows('r', it),
  isInclude: (it, judge) => judge.allows('r', it),
  includes: (_matches, candidates) => candidates,
}

async function fetchEntries(
  context: Context,
  call: Call,
  link: string,
  { care, types }: Wanted,
): Promise<Part<Item> | Problem> {
  const page = await fetchPage(context, call, buildGet(call, link), VISIBLE)
  if (isProblem(page)) return page
  const itemOf =
    (mode: Item['mode']) =>
    (released: CheckedResource): Item => ({ mode, released })
  const isWanted = ({ resource }: CheckedResource) =>
    (!care || isInCareRange(resource, care, context.baseUrl)) && (!types || types.has(resource.resourceType))
  return {
    items: [
      ...page.matches.filter(isWanted).map(itemOf('match')),
      ...page.includes.filter(isWanted).map(itemOf('include')),
    ],
    next: page.links.get('next'),
  }
}

/** Upstreams may repeat what they include on every page: each is shown once, as far as a link can remember. */
function includesShown(before: readonly string[]) {
  const keys = new Set(before)
  const keyOf = ({ released: { resource } }: Item) =>
    hash('sha256', `${resource.resourceType}/${resource.id}`, 'base64url').slice(0, 10)
  const isInclude = ({ mode }: Item) => mode === 'include'
  return {
    has: (item: Item) => isInclude(item) && keys.has(keyOf(item)),
    add(item: Item) {
      if (isInclude(item) && keys.size < INCLUDES_REMEMBERED) keys.add(keyOf(item))
    },
    keys: () => [...keys],
  }
}

interface Item {
  readonly mode: 'match' | 'include'
  readonly released: CheckedResource
}

function wantedBy(
  { access, interaction: { params } }: Call<Operation>,
  { types: named }: EverythingTarget,
): Wanted | Problem {
  const care = readCareRange(params)
  if (care && isProblem(care)) return care
  const paged = parseHistory(
    params.filter(([name]) => name === '_since' || name === '_count'),
    false,
  )
  if (isProblem(paged)) return paged
  const { count } = paged
  const sent = [...params.filter(([name]) => name === 'start' || name === 'end'), ...withPageSize(paged)]
  if (named.length === 0 && seesAll(access)) return { count, sent, care }
  const types = (named.length > 0 ? named : resourceTypes).filter(
    type => hasAccess(access, type, 's') || hasAccess(access, type, 'r'),
  )
  const wanted = named.length > 0 ? new Set(named) : undefined
  return { count, sent: [...sent, ['_type', types.join(',')]], care, types: wanted }
}
