import { isFailure } from '../../../core/index.ts'
import type { Query } from '../../../fhir/index.ts'
import { findSearchParameter, type IncludeRule } from '../../../fhir/index.ts'
import type { Failure, FhirRequest } from '../../../fhir-api/index.ts'
import { chunk } from '../chunk.ts'
import type { GatewayContext } from '../context.ts'
import { failTooCostly } from '../http/response.ts'
import { LIST_VALUES, REVERSE_INCLUDES, UPSTREAM_PAGES } from '../limits.ts'
import type { CheckedResource, Extent, Links, PageCursor } from '../paging.ts'
import { buildStrictSearch, visitMatches } from './chains.ts'
import { fetchPage, PAGE_SIZE } from './check-page.ts'
import { END } from './continuation.ts'
import { gather } from './gather.ts'
import { MAX_FILTERED_PAGE, type PlannedPortion, type SearchPlan } from './plan.ts'
import { createSortOrder } from './sort-order.ts'

/** A page that the gateway composes, or that it passes on to a caller who may see everything. */
export interface FoundPage {
  readonly matches: readonly CheckedResource[]
  readonly includes: readonly CheckedResource[]
  readonly links: Links
  readonly extent: Extent
  /** Whether included resources may be missing. */
  readonly lacksIncludes: boolean
}

export const NO_MATCHES: FoundPage = {
  matches: [],
  includes: [],
  links: new Map(),
  extent: 'whole',
  lacksIncludes: false,
}

/**
 * Composes a page from the searches of a plan. What is left out changes neither pages nor links: one match more than the page
 * has is looked for, and only it makes a next page.
 */
export async function composePage(
  request: FhirRequest,
  { context, portions, query, ownIncludes }: SearchPlan,
  from: PageCursor | undefined,
): Promise<FoundPage | Failure> {
  const candidates: CheckedResource[] = []
  let lacksIncludes = false
  const fetches = portions.map(portion => async (cursor: PageCursor) => {
    const first = portion.page(choosePageSize(portion, query, cursor))
    const part = await fetchPage(context, request, first, portion.check, cursor)
    if (isFailure(part)) return portion.isImplied && isUnknownType(part) ? NO_ITEMS : part
    for (const it of part.includes) candidates.push(it)
    lacksIncludes ||= part.lacksIncludes
    return { ...part, items: part.matches }
  })
  const compare = createSortOrder(query.sort, context.baseUrl)
  const page = await gather(from, query.count, fetches, { getSize: ({ text }) => text.length, compare })
  if (isFailure(page)) return page
  const { items: matches, links, extent } = page
  if (extent === 'endless') return failTooCostly(UPSTREAM_PAGES * PAGE_SIZE)
  const referring = await findReverseIncludes(context, request, ownIncludes, matches)
  if (isFailure(referring)) return referring
  const [portion] = portions
  return {
    matches,
    includes: portion?.check.includes(matches, [...candidates, ...referring.found]) ?? [],
    links,
    extent,
    lacksIncludes: lacksIncludes || referring.isCut,
  }
}

const NO_ITEMS = { items: [], continuation: END }

export function isUnknownType(failure: Failure): boolean {
  return failure.reason === 'upstream-declined' && (failure.status === 404 || failure.status === 501)
}

/** With those shown before, and one more. Many are requested where many may be left out, and for a later page. */
function choosePageSize({ isComplete }: PlannedPortion, { count }: Query, cursor: PageCursor): number {
  const { skip: shown = 0 } = cursor
  const min = isComplete ? 0 : PAGE_SIZE
  const max = Math.max(PAGE_SIZE, isComplete ? count + 1 : Math.min(count + 1, MAX_FILTERED_PAGE))
  return Math.min(Math.max(shown + count + 1, min), max)
}

/** The resources within the caller's access that refer to the matches of a page by reverse includes. */
async function findReverseIncludes(
  context: GatewayContext,
  request: FhirRequest,
  rules: readonly IncludeRule[],
  matches: readonly CheckedResource[],
): Promise<ReverseIncludes | Failure> {
  const found: CheckedResource[] = []
  for (const { source, code, target } of rules.flatMap(listParameters)) {
    const targets = target === undefined ? findSearchParameter(source, code)?.target : [target]
    const named = matches
      .filter(({ type }) => targets?.includes(type) ?? true)
      .map(({ type, id }) => `${type}/${id}`)
    for (const few of chunk(named, LIST_VALUES)) {
      const search = buildStrictSearch(request, source, [
        [code, few.join()],
        ['_count', '500'],
      ])
      const visited = await visitMatches(context, search, Number.POSITIVE_INFINITY, page => {
        found.push(...page.matches)
        return found.length > REVERSE_INCLUDES ? 'enough' : undefined
      })
      if (isFailure(visited)) return visited
      if (found.length > REVERSE_INCLUDES) return { found: found.slice(0, REVERSE_INCLUDES), isCut: true }
    }
  }
  return { found, isCut: false }
}

interface ReverseIncludes {
  readonly found: readonly CheckedResource[]
  /** Whether there are more than are shown. */
  readonly isCut: boolean
}

function listParameters({ source, parameters, target }: IncludeRule) {
  return parameters.map(code => ({ source, code, target }))
}
