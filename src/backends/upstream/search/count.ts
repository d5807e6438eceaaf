import { type Failure, type FhirRequest, isFailure, type Search } from '../../../fhir-api/index.ts'
import type { CheckedCount, GatewayContext } from '../context.ts'
import type { UpstreamRequest } from '../http/exchange.ts'
import { failTooCostly } from '../http/failure.ts'
import { parseResource } from '../http/parse-resource.ts'
import { resolveChains } from './chains.ts'
import { visitPages } from './pages.ts'
import { findOneType, planSearch, type SearchPlan, type SearchRequest } from './plan.ts'

/** Fewer matches are read as fast as they are compared. */
const LEAST_REMEMBERED = 20

/**
 * Counts the matches of a search within the caller's access. The upstream's total may include resources outside the access
 * (GATEWAY-4): it only shows whether a number that was counted before still holds.
 */
export async function countMatches(
  context: GatewayContext,
  request: FhirRequest<Search>,
  most: number,
): Promise<number | Failure> {
  const resolved = await resolveChains(context, request)
  if (resolved === 'nothing') return 0
  if (isFailure(resolved)) return resolved
  const plan = await planSearch(context, resolved)
  if (isFailure(plan)) return plan
  if (!plan.request) return 0
  const key = findKey(resolved)
  const known = key === undefined ? undefined : context.counts.get(key)
  if (known && (await isCurrent(context, plan, known))) return known.count
  const counted = await countEach(context, request, plan, plan.request, most)
  if (isFailure(counted)) return counted
  const isRemembered = counted.total > LEAST_REMEMBERED && counted.newest !== undefined
  if (key !== undefined && isRemembered) context.counts.set(key, counted)
  return counted.count
}

/** Equal keys have the same matches; undefined where panel membership or several types decide. */
function findKey({ interaction, access }: SearchRequest): string | undefined {
  const type = findOneType(interaction)
  const filter = type === undefined ? undefined : access.filterFor(type, 's')
  const isDated = interaction.params.some(([name]) => name.startsWith('_lastUpdated'))
  if (!filter || isDated || (filter !== 'everything' && filter.some(({ panel }) => panel))) return undefined
  return JSON.stringify([filter, interaction])
}

async function isCurrent(
  context: GatewayContext,
  { count: requestCount }: SearchPlan,
  { total, newest }: CheckedCount,
): Promise<boolean> {
  const [present, changed] = await Promise.all([
    askTotal(context, requestCount([])),
    askTotal(context, requestCount([['_lastUpdated', `gt${newest}`]])),
  ])
  return present === total && changed === 0
}

async function askTotal(
  { upstream }: GatewayContext,
  request: UpstreamRequest | undefined,
): Promise<number | undefined> {
  const response = request && (await upstream.ask(request))
  if (!response || isFailure(response) || response.status !== 200) return undefined
  const bundle = parseResource(response)
  return !isFailure(bundle) && typeof bundle.total === 'number' ? bundle.total : undefined
}

async function countEach(
  context: GatewayContext,
  request: FhirRequest<Search>,
  plan: SearchPlan,
  first: UpstreamRequest,
  most: number,
): Promise<CheckedCount | Failure> {
  let total = 0
  const times: string[] = []
  const count = await visitPages(context, request, first, plan.check, most, page => {
    const matches = page.matches.length + page.omitted
    total += matches
    if (matches > 0) times.push(page.newest)
  })
  if (isFailure(count)) return count
  if (count === 'too-many') return failTooCostly(most)
  const newest = times.includes('') ? undefined : times.toSorted().at(-1)
  return { count, total, newest }
}
