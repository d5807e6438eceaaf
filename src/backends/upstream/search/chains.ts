import { isFailure } from '../../../core/index.ts'
import {
  failFor,
  findSearchParameter,
  isId,
  matches,
  type Params,
  parseSearch,
  type SearchClause,
  type SearchError,
  SearchSteps,
} from '../../../fhir/index.ts'
import { type Failure, type FhirRequest, findResource, type Search } from '../../../fhir-api/index.ts'
import type { Access } from '../../../smart/index.ts'
import type { GatewayContext } from '../context.ts'
import { failTooCostly } from '../http/response.ts'
import { LIST_VALUES } from '../limits.ts'
import { createLookup, hasAccess } from '../read/access.ts'
import { type TakePage, visitPages } from './check-page.ts'
import { listTargets } from './list-targets.ts'
import { planSearch } from './plan.ts'
import { findTypes, type SearchRequest } from './search-request.ts'

type ChainClause = Extract<SearchClause, { readonly kind: 'chain' }>
type HasClause = Extract<SearchClause, { readonly kind: 'has' }>
type Param = Params[number]
type Resolved = Param | 'nothing' | Failure

/**
 * Replaces each chain by its targets (`patient.name=Ann` becomes `patient=Patient/1`), found by a search within the
 * caller's access. The upstream would follow the chain through all of its data, and the result would reveal other
 * resources (ROUTE-4). `nothing` where the caller may see no target.
 */
export async function resolveChains(
  context: GatewayContext,
  request: SearchRequest,
): Promise<SearchRequest | 'nothing' | Failure> {
  if (!request.interaction.params.some(([name]) => isResolvedHere(name))) return request
  const types = findTypes(request.interaction, request.access)
  if (isFailure(types)) return types
  const [type, ...others] = types
  if (type === undefined) return 'nothing'
  if (others.length > 0) return seesWholeChains(context, request, types) ? request : OF_SEVERAL_TYPES
  const params: Param[] = []
  for (const pair of request.interaction.params) {
    const resolved = isResolvedHere(pair[0]) ? await resolve(context, request, type, pair) : pair
    if (resolved === 'nothing' || isFailure(resolved)) return resolved
    params.push(resolved)
  }
  return { ...request, interaction: { ...request.interaction, params } }
}

// A chain has other targets for each type.
const OF_SEVERAL_TYPES = failFor('chain-in-types')

/** HAPI takes half a second for the second page of a search, however small. */
const LARGE_PAGE: Param = ['_count', '500']

/** Visits all pages of a search within the caller's access, and counts the matches, up to a number. */
export async function visitMatches(
  context: GatewayContext,
  request: SearchRequest,
  max: number,
  take: TakePage,
): Promise<number | 'too-many' | Failure> {
  const resolved = await resolveChains(context, request)
  if (resolved === 'nothing') return 0
  if (isFailure(resolved)) return resolved
  const plan = await planSearch(context, resolved)
  if (isFailure(plan)) return plan
  let count = 0
  let isEnough = false
  for (const { all, check } of plan.portions) {
    const visited = await visitPages(plan.context, request, all(), check, max - count, page => {
      isEnough = take(page) === 'enough'
      return isEnough ? 'enough' : undefined
    })
    if (typeof visited !== 'number') return visited
    count += visited
    if (isEnough) return count
  }
  return count
}

/** A search of one type for the gateway's own use, within the caller's access. */
export function buildStrictSearch(
  request: FhirRequest & Pick<SearchRequest, 'memberBy'>,
  type: string,
  params: Params,
): SearchRequest {
  const { memberBy: _, ...rest } = request
  return {
    ...rest,
    interaction: { kind: 'search-type', type, params },
    isStrict: true,
    preferences: { ...request.preferences, lenient: false },
  }
}

/** The chain as the decision has parsed it, if it is one of the caller. */
function readChain(
  { baseUrl }: GatewayContext,
  { chains, work }: FhirRequest,
  type: string,
  pair: Param,
): SearchClause | SearchError {
  return chains?.get(pair) ?? parseSearch(type, ...pair, baseUrl, new SearchSteps(work))
}

async function resolve(
  context: GatewayContext,
  request: FhirRequest<Search>,
  type: string,
  pair: Param,
): Promise<Resolved> {
  const [name, value] = pair
  if (name === '_list') return resolveList(context, request, value)
  const clause = readChain(context, request, type, pair)
  // An invalid clause is refused when the search is planned.
  if (clause.kind === 'error' || seesWholeChain(clause, request.access)) return [name, value]
  if (clause.kind === 'chain') return resolveChain(context, request, clause, name, value)
  return clause.kind === 'has' ? resolveHas(context, request, clause, type, name, value) : [name, value]
}

/** Keeps the lists that the caller may read: the content of another list must not be revealed. */
async function resolveList(
  context: GatewayContext,
  request: FhirRequest<Search>,
  value: string,
): Promise<Resolved> {
  const visible: string[] = []
  for (const id of value.split(',')) {
    // A list that the upstream computes for the patient (`$current-problems`).
    const isComputed = /^\$[a-z][a-z-]*$/.test(id)
    if (!isComputed && !isId(id)) continue
    const found = isComputed
      ? undefined
      : await findResource(createLookup(context, request), request, { permission: 'r', type: 'List', id })
    if (isFailure(found) && found.reason !== 'absent' && found.reason !== 'outside-access') return found
    if (isComputed || (found && !isFailure(found) && !found.deleted)) visible.push(id)
  }
  return visible.length === 0 ? 'nothing' : ['_list', visible.join(',')]
}

async function resolveChain(
  context: GatewayContext,
  request: FhirRequest<Search>,
  clause: ChainClause,
  name: string,
  value: string,
): Promise<Resolved> {
  const rest = name.slice(name.indexOf('.') + 1)
  const found: string[] = []
  for (const { type } of clause.targets) {
    if (!hasAccess(request.access, type, 's')) continue
    const only = type === 'Patient' ? findOnlyPatient(request.access, rest) : undefined
    if (only !== undefined) {
      const isTarget = await matchesPatient(context, request, only, [rest, value])
      if (isFailure(isTarget)) return isTarget
      if (isTarget) found.push(`Patient/${only}`)
      continue
    }
    const search = buildStrictSearch(request, type, [[rest, value], LARGE_PAGE])
    const visited = await visitMatches(context, search, LIST_VALUES, ({ matches }) => {
      for (const { resource } of matches) found.push(`${type}/${resource.id}`)
    })
    if (isFailure(visited)) return visited
    if (visited === 'too-many') return failTooCostly(LIST_VALUES)
  }
  return found.length === 0 ? 'nothing' : [clause.parameter, found.join(',')]
}

/** The one patient whom the caller may see, if the gateway reads the parameter as every server does. */
function findOnlyPatient(access: Access, name: string): string | undefined {
  const filter = access.filterFor('Patient', 's')
  const [constraint, another] = filter === 'everything' ? [] : filter
  const isToken = findSearchParameter('Patient', name)?.type === 'token'
  return isToken && !another ? constraint?.patient : undefined
}

/** A read takes a server less time than a search. */
async function matchesPatient(
  context: GatewayContext,
  request: FhirRequest<Search>,
  id: string,
  [name, value]: Param,
): Promise<boolean | Failure> {
  const found = await findResource(createLookup(context, request), request, {
    permission: 's',
    type: 'Patient',
    id,
  })
  if (isFailure(found)) return found.reason !== 'absent' && found.reason !== 'outside-access' && found
  const patient = found.deleted ? undefined : found.parse()
  if (patient === undefined || isFailure(patient)) return patient ?? false
  return matches(patient, name, value, context.baseUrl) === true
}

async function resolveHas(
  context: GatewayContext,
  request: FhirRequest<Search>,
  { type: source, parameter }: HasClause,
  type: string,
  name: string,
  value: string,
): Promise<Resolved> {
  if (!hasAccess(request.access, source, 's')) return 'nothing'
  const possible = countVisible(request.access, type)
  const page: Param = possible === undefined ? LARGE_PAGE : ['_count', String(possible * HITS_OF_EACH)]
  const ids = new Set<string>()
  const search = buildStrictSearch(request, source, [[name.split(':').slice(3).join(':'), value], page])
  const visited = await visitMatches(context, search, Number.POSITIVE_INFINITY, ({ matches }) => {
    for (const { resource } of matches)
      for (const id of listTargets(resource, parameter, type, context.baseUrl)) ids.add(id)
    return ids.size === possible || ids.size > LIST_VALUES ? 'enough' : undefined
  })
  if (isFailure(visited)) return visited
  if (ids.size > LIST_VALUES) return failTooCostly(LIST_VALUES)
  return ids.size === 0 ? 'nothing' : ['_id', [...ids].join(',')]
}

/** A hit may be one that the caller must not see. */
const HITS_OF_EACH = 5

/** The number of resources that the caller may see, if the access names each: a search for what refers to them ends with the last. */
function countVisible(access: Access, type: string): number | undefined {
  const filter = access.filterFor(type, 's')
  if (type !== 'Patient' || filter === 'everything') return undefined
  const patients = new Set(filter.map(({ patient }) => patient))
  return patients.has(undefined) || patients.size > MAX_NAMED ? undefined : patients.size
}

const MAX_NAMED = 50

/** Whether the caller may see everything that a chain reads: then the upstream may follow it. */
function seesWholeChain(clause: SearchClause, access: Access): boolean {
  if (clause.kind === 'has')
    return access.filterFor(clause.type, 's') === 'everything' && seesWholeChain(clause.clause, access)
  if (clause.kind !== 'chain') return true
  return clause.targets.every(
    it => access.filterFor(it.type, 's') === 'everything' && seesWholeChain(it.clause, access),
  )
}

function seesWholeChains(context: GatewayContext, request: SearchRequest, types: readonly string[]): boolean {
  const { interaction, access } = request
  // An invalid clause is refused when the search is planned.
  const isOpen = (clause: SearchClause | SearchError) =>
    clause.kind === 'error' || seesWholeChain(clause, access)
  return interaction.params
    .filter(([name]) => isResolvedHere(name))
    .every(pair => types.every(type => isOpen(readChain(context, request, type, pair))))
}

function isResolvedHere(name: string): boolean {
  return name.includes('.') || name.startsWith('_has:') || name === '_list'
}
