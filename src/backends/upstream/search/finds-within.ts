import { isFailure } from '../../../core/index.ts'
import type { FhirRequest } from '../../../fhir-api/index.ts'
import type { Access, AccessFilter } from '../../../smart/index.ts'
import type { GatewayContext } from '../context.ts'
import { parseResource } from '../http/response.ts'
import { setParam, type UpstreamSearch } from '../http/upstream-search.ts'
import { listConditionSearches } from './collect.ts'
import { planSearch } from './plan.ts'
import { sendSearch } from './send-search.ts'

/**
 * Whether a search within a filter finds a resource; undefined where the upstream does not say it. It only counts, so that
 * the content takes no time.
 */
export async function findsWithin(
  context: GatewayContext,
  request: FhirRequest,
  type: string,
  id: string,
  filter: AccessFilter,
): Promise<boolean | undefined> {
  const counts = await Promise.all(
    splitFilter(filter).map(part => countWithin(context, request, type, id, part)),
  )
  const known = counts.flat()
  if (known.some(count => count !== undefined && count > 0)) return true
  return known.includes(undefined) ? undefined : false
}

/** What membership parameters find, and the rest: a search by these parameters would miss it. */
function splitFilter(filter: AccessFilter): readonly AccessFilter[] {
  if (filter === 'everything') return [filter]
  const ofPatients = Map.groupBy(filter, ({ patient, panel }) => patient !== undefined || panel !== undefined)
  return [...ofPatients.values()]
}

async function countWithin(
  context: GatewayContext,
  request: FhirRequest,
  type: string,
  id: string,
  filter: AccessFilter,
): Promise<readonly (number | undefined)[]> {
  const access: Access = {
    filterFor: (of, permission) => (of === type ? filter : request.access.filterFor(of, permission)),
  }
  const searches = listConditionSearches({ ...request, access }, type, [['_id', id]])
  const counts = searches.map(async search => {
    const plan = await planSearch(context, search)
    if (isFailure(plan)) return [undefined]
    return Promise.all(plan.portions.map(({ all }) => count(context, all())))
  })
  return (await Promise.all(counts)).flat()
}

async function count(context: GatewayContext, search: UpstreamSearch): Promise<number | undefined> {
  const { response } = await sendSearch(context, setParam(search, '_summary', 'count'), {
    send: it => context.upstream.ask(it),
    isRefused: it => !isFailure(it) && it.status === 400,
  })
  if (isFailure(response) || response.status !== 200) return undefined
  const bundle = parseResource(response)
  return isFailure(bundle) || typeof bundle.total !== 'number' ? undefined : bundle.total
}
