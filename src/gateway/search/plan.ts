import type { Access } from '../../consent/index.ts'
import {
  isProblem,
  isResourceType,
  type Params,
  parseQuery,
  patientsOf,
  type Query,
  type Resource,
  resourceTypes,
} from '../../fhir/index.ts'
import type { Call, Context, InteractionOf } from '../call.ts'
import { reaches } from '../judge/reaches.ts'
import type { Problem } from '../problem.ts'
import type { UpstreamRequest } from '../upstream/exchange.ts'
import { searching } from '../upstream/request-of.ts'
import { connected } from './connected.ts'
import type { PageJudge } from './fetch-page.ts'
import { narrow } from './narrow.ts'
import { isReached, narrowedIncludes } from './narrow-includes.ts'

export type Search = InteractionOf<'search-type' | 'search-system' | 'search-compartment'>

/** What is sent to the upstream for a search, and how what comes back is judged. */
export interface Plan {
  readonly query: Query
  readonly request: UpstreamRequest
  readonly judge: PageJudge
}

// Shaped here, counted here, or said again in a narrower way.
const REPLACED = /^(?:_summary|_elements|_total|_contained|_type|_(?:rev)?include(?::.*)?)$/

export async function planSearch(context: Context, call: Call<Search>): Promise<Plan | Problem> {
  const { interaction, access } = call
  const types = typesOf(interaction, access)
  if (isProblem(types)) return types
  const single = oneType(interaction)
  const params =
    single === undefined ? interaction.params.filter(([name]) => name !== '_type') : interaction.params
  const query = parseQuery(types, params, context.baseUrl, call.preferences.lenient)
  if (isProblem(query)) return query
  const asked = query.used.filter(([name]) => !REPLACED.test(name))
  const { path, params: narrowing } = await narrowed(context, call, types)
  return {
    query,
    request: searching(
      call,
      path,
      [...asked, ...narrowing, ...narrowedIncludes(query.includes, access)],
      interaction.posted === true,
      context.addresses,
    ),
    judge: judgeOf(context, call, new Set(types), query),
  }
}

async function narrowed(context: Context, { interaction, access }: Call<Search>, types: readonly string[]) {
  const type = oneType(interaction)
  const compartment = interaction.kind === 'search-compartment' ? interaction.id : undefined
  if (type !== undefined) return narrow(type, access.reach(type, 's'), await context.narrowing(), compartment)
  const path = compartment === undefined ? '' : `/Patient/${compartment}/*`
  return { path, params: [['_type', types.join(',')]] as const satisfies Params }
}

export function judgeOf(
  { baseUrl }: Context,
  { interaction, access }: Call<Search>,
  types: ReadonlySet<string>,
  { includes }: Pick<Query, 'includes'>,
): PageJudge {
  const [along, against] = [
    includes.some(it => it.direction === 'forward'),
    includes.some(it => it.direction === 'reverse'),
  ]
  const inCompartment = (resource: Resource) =>
    interaction.kind !== 'search-compartment' || patientsOf(resource, baseUrl).has(interaction.id)
  return {
    isMatch: resource =>
      types.has(resource.resourceType) && inCompartment(resource) && reaches(access, 's', resource, baseUrl),
    isInclude: resource =>
      (along && reaches(access, 'r', resource, baseUrl)) ||
      (against && reaches(access, 's', resource, baseUrl)),
    includes: (matches, candidates) => connected(matches, candidates, includes, baseUrl),
  }
}

export function oneType(interaction: Search): string | undefined {
  return interaction.kind === 'search-system' || interaction.type === '*' ? undefined : interaction.type
}

/** The types that are searched: the one of the address, those that `_type` names, else all that are reached. */
export function typesOf(interaction: Search, access: Access): readonly string[] | Problem {
  const type = oneType(interaction)
  if (type !== undefined) return [type]
  const named = interaction.params
    .filter(([name]) => name === '_type')
    .flatMap(([, value]) => value.split(','))
  if (!named.every(isResourceType))
    return {
      problem: 'bad-search',
      code: 'invalid',
      text: 'Cannot read _type: expected resource types of R4',
    }
  return named.length > 0 ? [...new Set(named)] : resourceTypes.filter(it => isReached(access, it, 's'))
}
