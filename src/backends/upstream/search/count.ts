import { isFailure } from '../../../core/index.ts'
import type { Query } from '../../../fhir/index.ts'
import type { Failure, FhirRequest, Search } from '../../../fhir-api/index.ts'
import type { GatewayContext } from '../context.ts'
import { failTooCostly, parseResource, toFailure } from '../http/response.ts'
import { NO_CACHE, setCacheControl, setParam, toRequest } from '../http/upstream-search.ts'
import { COUNTED } from '../limits.ts'
import { visitMatches } from './chains.ts'
import type { FoundPage } from './compose.ts'
import { planSearch } from './plan.ts'

/**
 * The upstream's total cannot be checked and is not passed on. A search with one page has its own total; of others the
 * gateway counts the matches only on request.
 */
export async function computeTotal(
  context: GatewayContext,
  request: FhirRequest<Search>,
  { total }: Query,
  { matches, extent }: FoundPage,
): Promise<number | undefined | Failure> {
  if (total === 'none') return undefined
  if (extent === 'whole') return matches.length
  if (total !== 'accurate' || extent === 'cut') return undefined
  return countMatches(context, request)
}

// Parameters that do not change the number of matches.
const NOT_COUNTED = /^(?:_count|_summary|_elements|_sort|_total|_(?:rev)?include(?::.*)?)$/

/** Counts the matches of a search within the caller's access. The upstream's total may include resources outside it (GATEWAY-4). */
export async function countMatches(
  context: GatewayContext,
  request: FhirRequest<Search>,
): Promise<number | Failure> {
  const params = request.interaction.params.filter(([name]) => !NOT_COUNTED.test(name))
  const interaction: Search = { ...request.interaction, params: [...params, ['_count', '500']] }
  const count = await visitMatches(context, { ...request, interaction }, COUNTED, () => undefined)
  return count === 'too-many' ? failTooCostly(COUNTED) : count
}

/** The upstream's own total, only for callers who may see all that it counts. Undefined if it does not say. */
export async function countUpstream(
  context: GatewayContext,
  request: FhirRequest<Search>,
): Promise<number | undefined | Failure> {
  const plan = await planSearch(context, request)
  if (isFailure(plan)) return plan
  let total = 0
  for (const { all } of plan.portions) {
    const search = setParam(setParam(all(), '_count', '0'), '_summary', 'count')
    const response = await context.upstream.ask(toRequest(setCacheControl(search, NO_CACHE)))
    if (isFailure(response)) return response
    if (response.status !== 200) return toFailure(response, request)
    const bundle = parseResource(response)
    if (isFailure(bundle)) return bundle
    if (typeof bundle.total !== 'number') return undefined
    total += bundle.total
  }
  return total
}
