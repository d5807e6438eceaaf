import { isProblem, type Params } from '../../../fhir/index.ts'
import type { CollectLimit, Search, SearchEntry } from '../../../fhir-api/index.ts'
import type { Call, Context } from '../context.ts'
import type { Problem } from '../problem.ts'
import { resolveChains } from './chains.ts'
import { toEntry } from './entry.ts'
import type { CheckedResource, UpstreamPage } from './fetch-page.ts'
import { planSearch } from './plan.ts'
import { visitPages } from './visit-pages.ts'

/** All that a search finds within reach; a problem when it is more than `most`. */
export async function collect(
  context: Context,
  call: Call<Search>,
  most: number,
): Promise<readonly CheckedResource[] | Problem> {
  const found: CheckedResource[] = []
  const count = await visitMatches(context, call, most, ({ matches }) => found.push(...matches))
  return typeof count === 'object' ? count : found
}

/** How many that are. Nothing of them is kept meanwhile. */
export function countMatches(context: Context, call: Call<Search>, most: number): Promise<number | Problem> {
  return visitMatches(context, call, most, () => undefined)
}

export async function visitMatches(
  context: Context,
  call: Call<Search>,
  most: number,
  take: (page: UpstreamPage) => void,
): Promise<number | Problem> {
  const resolved = await resolveChains(context, call)
  if (resolved === 'nothing') return 0
  if (isProblem(resolved)) return resolved
  const plan = await planSearch(context, resolved)
  if (isProblem(plan)) return plan
  return plan.request ? visitPages(context, call, plan.request, plan.check, most, take) : 0
}

/** All that a search finds, for the API. */
export async function collectEntries(
  context: Context,
  call: Call<Search>,
  { matches }: CollectLimit,
): Promise<readonly SearchEntry[] | 'too-many' | Problem> {
  const { interaction } = call
  const params: Params = [...interaction.params, ['_count', '500']]
  const found: CheckedResource[] = []
  const search = { ...call, interaction: { ...interaction, params }, isStrict: true } as const
  const count = await visitMatches(context, search, matches, page => found.push(...page.matches))
  if (typeof count === 'number') return found.map(toEntry)
  return count.problem === 'too-costly' ? 'too-many' : count
}

/** A search of one type for the gateway's own use, as the caller would be answered. */
export function searchFor(call: Call, type: string, params: Params): Call<Search> {
  return {
    ...call,
    interaction: { kind: 'search-type', type, params },
    // A parameter that is ignored, or that the upstream may ignore, would make a condition match more.
    isStrict: true,
    preferences: { ...call.preferences, lenient: false },
  }
}
