import { isFailure } from '../../../core/index.ts'
import { failFor, isExcess, type Params } from '../../../fhir/index.ts'
import {
  type CollectLimit,
  type ConditionMatch,
  dependsOnTypeAlone,
  type Failure,
  type FhirRequest,
  type Search,
  type SearchEntry,
  type StoredVersion,
} from '../../../fhir-api/index.ts'
import type { GatewayContext } from '../context.ts'
import type { CheckedResource } from '../paging.ts'
import { UpstreamVersion } from '../read/read-version.ts'
import { buildStrictSearch, visitMatches } from './chains.ts'
import { buildExactParams, createSendable } from './condition-params.ts'
import { listMembershipParameters } from './membership-params.ts'
import type { SearchRequest } from './search-request.ts'

/** All matches of a search within the caller's access. */
export async function collectEntries(
  context: GatewayContext,
  request: FhirRequest<Search>,
  { matches }: CollectLimit,
): Promise<readonly SearchEntry[] | 'too-many' | Failure> {
  const { interaction } = request
  const params: Params = [...interaction.params, ['_count', '500']]
  const found: CheckedResource[] = []
  const search = { ...request, interaction: { ...interaction, params }, isStrict: true } as const
  const count = await visitMatches(context, search, matches, page => {
    found.push(...page.matches)
  })
  if (isFailure(count)) return isExcess(count) ? 'too-many' : count
  return count === 'too-many' ? count : found
}

/**
 * Finds the resource that a condition is about. Each match is compared with the condition: an upstream that ignores a
 * parameter would otherwise have another resource overwritten or deleted. Such an upstream must not decide by itself.
 */
export async function findMatch(
  context: GatewayContext,
  request: FhirRequest,
  type: string,
  params: Params,
): Promise<ConditionMatch | Failure> {
  const found = new Map<string | undefined, CheckedResource>()
  let omitted = 0
  for (const search of listConditionSearches(request, type, params)) {
    const count = await visitMatches(context, search, 1, page => {
      for (const match of page.matches) found.set(match.resource.id, match)
      omitted += page.omitted
    })
    if (isFailure(count)) return count
    if (count === 'too-many' || found.size > 1) return failFor('multiple-matches', { type })
  }
  const [match] = found.values()
  return {
    match: match && toVersion(type, match),
    // The upstream would find a match that the caller may not see, and name it.
    ifNoneExist: omitted === 0 ? bindCondition(context, request, type, params) : undefined,
  }
}

/**
 * The searches by every membership parameter: one finds only a part of a compartment, and no match may be missed. The first
 * is the condition that is sent with a create (`bindCondition`), so that a match which the upstream would find is known,
 * also if the caller may not see it. The upstream's own compartments need not contain it.
 */
export function listConditionSearches(
  request: FhirRequest,
  type: string,
  params: Params,
): readonly SearchRequest[] {
  const search = buildStrictSearch(request, type, params)
  const codes = listMembershipParameters(type, request.access.filterFor(type, 's'), 'parameter')
  return codes?.map(memberBy => ({ ...search, memberBy })) ?? [search]
}

/**
 * A condition within the caller's access that the upstream decides like the gateway; undefined where it could not. A chain
 * would be evaluated without the access to its target.
 */
function bindCondition(
  { baseUrl, profile }: GatewayContext,
  { access, work }: FhirRequest,
  type: string,
  params: Params,
): Params | undefined {
  const narrowing = buildExactParams(type, access.filterFor(type, 's'))
  if (!narrowing || !dependsOnTypeAlone(type, params, baseUrl, work)) return undefined
  const condition = [...params, ...narrowing]
  const isSendable = (param: Params[number]) =>
    createSendable(
      type,
      condition.filter(it => it !== param),
    )(param)
  return profile().exactSearches || condition.every(isSendable) ? condition : undefined
}

function toVersion(type: string, { id, text }: CheckedResource): StoredVersion {
  const headers = { 'content-type': 'application/fhir+json' }
  return new UpstreamVersion(type, id, { status: 200, headers, text })
}
