import type { Query } from '../../../fhir/index.ts'
import type { Failure, FhirRequest, Search } from '../../../fhir-api/index.ts'
import type { GatewayContext } from '../context.ts'
import { failTooCostly } from '../http/response.ts'
import { COUNTED } from '../limits.ts'
import { visitMatches } from './chains.ts'
import type { FoundPage } from './compose.ts'

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
