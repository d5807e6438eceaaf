import {
  couldMatch,
  fail,
  isId,
  isInCompartment,
  isResourceType,
  type Params,
  parseQuery,
  parseReference,
  type Query,
  type Resource,
  resourceTypes,
} from '../../../fhir/index.ts'
import type { Search } from '../../../fhir-api/index.ts'
import { type Failure, type FhirRequest, isFailure } from '../../../fhir-api/index.ts'
import type { Access } from '../../../smart/index.ts'
import { type AccessFilter, type Constraint, hasCompartment, type Panel } from '../../../smart/index.ts'
import { hasAccess } from '../access.ts'
import type { GatewayContext } from '../context.ts'
import { buildSearch, NO_CACHE, NO_STORE, requireStrict, setCacheControl } from '../http/build-request.ts'
import type { UpstreamRequest } from '../http/exchange.ts'
import { expandPanels } from '../membership.ts'
import { findIncludes } from './includes.ts'
import { createSendable, isUnlimited, type Narrowed, narrow, narrowIncludes } from './narrow.ts'
import { PAGE_SIZE, type PageCheck } from './pages.ts'

const OF_PATIENT = /^(?:patient|subject)(?::Patient)?$/

/** The patients that a search names by id; undefined where it names none, or names them otherwise. */
export function findNamedPatients(
  search: Search,
  type: string,
  baseUrl: string,
): readonly string[] | undefined {
  if (search.kind === 'search-compartment') return [search.id]
  const namesPatient = (name: string) => (type === 'Patient' ? name === '_id' : OF_PATIENT.test(name))
  const value = search.params.find(([name]) => namesPatient(name))?.[1]
  const ids = value?.split(',').map(text => findPatient(text, baseUrl))
  return ids?.every(id => id !== undefined) ? ids : undefined
}

function findPatient(text: string, baseUrl: string): string | undefined {
  if (isId(text)) return text
  const reference = parseReference(text, baseUrl)
  return reference?.type === 'Patient' ? reference.id : undefined
}

/** A search request that may be one of the gateway's own. */
export interface SearchRequest extends FhirRequest<Search> {
  /** Something is decided by the result: every parameter is evaluated here, and none may be ignored. */
  readonly isStrict?: true
  /** The parameter that finds the resources of the caller's patients, where it is not the usual one of the type. */
  readonly memberBy?: string
}

/** The request to the upstream for a search, and the check of its response. */
export interface SearchPlan {
  readonly query: Query
  /** Undefined where the caller may see nobody's data. */
  readonly request: UpstreamRequest | undefined
  /** The request for large pages, from which the gateway composes its own. */
  readonly wide: () => UpstreamRequest | undefined
  /** The request for the number of matches on the upstream, with further parameters. */
  readonly count: (more: Params) => UpstreamRequest | undefined
  readonly check: PageCheck
  /** Whether the request expresses the whole access filter. */
  readonly isExact: boolean
}

/** The largest page: it is checked in memory. */
const LARGEST_PAGE = 250

/** One resource more than a page has: then there is a next page. */
export function setPageSize({ used, count }: Pick<Query, 'used' | 'count'>, least = PAGE_SIZE): Params {
  return [...dropCount({ used }), ['_count', String(Math.min(Math.max(count + 1, least), LARGEST_PAGE))]]
}

/** Sorts by `_id` last: the gateway sends the search again for the next page, and resources with equal sort keys must keep their order. */
function sortById(params: Params): Params {
  const keys = params.filter(([name]) => name === '_sort').flatMap(([, value]) => value.split(','))
  const sorted = keys.some(key => /^-?_id$/.test(key)) ? keys : [...keys, '_id']
  return [...params.filter(([name]) => name !== '_sort'), ['_sort', sorted.join(',')]]
}

function dropCount({ used }: Pick<Query, 'used'>): Params {
  return used.filter(([name]) => name !== '_count')
}

// The gateway shapes and counts itself, and sends narrowed includes and types.
const REPLACED = /^(?:_summary|_elements|_total|_contained|_type|_(?:rev)?include(?::.*)?)$/

// With an id that does not exist HAPI finds nothing: the result would reveal which ids exist.
const UNSENT = '_id:not'

export async function planSearch(
  context: GatewayContext,
  request: SearchRequest,
): Promise<SearchPlan | Failure> {
  const { interaction, access } = request
  const types = findTypes(interaction, access)
  if (isFailure(types)) return types
  const single = findOneType(interaction)
  const params =
    single === undefined ? interaction.params.filter(([name]) => name !== '_type') : interaction.params
  const isForUpstream = ([name]: Params[number]) =>
    single !== undefined && !request.isStrict && context.isUpstreamParameter(single, name)
  const read = parseQuery(
    types,
    params.filter(pair => !isForUpstream(pair)),
    context.baseUrl,
    request.preferences.lenient,
  )
  if (isFailure(read)) return read
  const understood = new Set(read.used)
  const query = { ...read, used: params.filter(pair => understood.has(pair) || isForUpstream(pair)) }
  const narrowed = await narrowSearch(context, request, types)
  const { stableOrder } = await context.profile()
  const isExact = (narrowed?.isExact ?? true) && !query.used.some(([name]) => name === UNSENT)
  const requestFor = (params: Params, more: Params = []) => {
    const own = params.filter(([name]) => !REPLACED.test(name) && name !== UNSENT)
    const added = (narrowed?.params ?? []).filter(it => !isRepeated(it, own, context.baseUrl))
    const sent = [...own, ...added, ...narrowIncludes(query.includes, access), ...more]
    return (
      narrowed &&
      setCacheControl(
        requireStrict(buildSearch(request, narrowed.path, sent, interaction.posted === true, context.urls)),
        chooseCacheControl(context, request),
      )
    )
  }
  return {
    query,
    request: requestFor(isExact ? query.used : setPageSize(query)),
    wide: () => requestFor(stableOrder ? setPageSize(query) : sortById(setPageSize(query))),
    count: more => requestFor(dropCount(query), [['_summary', 'count'], ...more]),
    check: { ...createPageCheck(context, request, new Set(types), query), key: findKey(request, query) },
    isExact,
  }
}

/** Undefined if the content of the matches decides which resources are included. */
function findKey(
  { interaction, preferences, isStrict }: SearchRequest,
  { includes }: Query,
): string | undefined {
  if (includes.length > 0) return undefined
  const key = JSON.stringify([interaction, preferences.lenient, isStrict])
  return key.length > LONGEST_KEY ? undefined : key
}

const LONGEST_KEY = 1_000

/** The `Cache-Control` of a search: always fresh where something is decided by the result, else as the caller or the site says. */
export function chooseCacheControl(
  { searchCache }: GatewayContext,
  { preferences, isStrict }: SearchRequest,
): string | undefined {
  const { cacheControl = searchCache === 'bypass' ? NO_CACHE : undefined } = preferences
  // HAPI shows a part of the result with `no-store`. The caller gets all of it, unless it names a number itself.
  const isPart = cacheControl?.includes('max-results')
  if (isStrict || (cacheControl?.includes('no-store') && !isPart)) return NO_STORE
  return cacheControl?.includes('no-cache') && !isPart ? NO_CACHE : cacheControl
}

/** Undefined where the caller may see nobody's data. */
async function narrowSearch(
  context: GatewayContext,
  request: SearchRequest,
  types: readonly string[],
): Promise<Narrowed | undefined> {
  const { interaction, access } = request
  const type = findOneType(interaction)
  const compartment = interaction.kind === 'search-compartment' ? interaction.id : undefined
  if (type === undefined) {
    const params: Params = [['_type', types.join(',')]]
    const isExact = types.every(it => isUnlimited(access.filterFor(it, 's'), compartment))
    if (compartment === undefined) return { path: '', params, isExact }
    const of = await chooseCompartment(context, request, types, compartment)
    return of === undefined ? undefined : { path: `/Patient/${of}/*`, params, isExact }
  }
  const filter = access.filterFor(type, 's')
  const narrowing = await context.narrowing()
  const named = findNamedPatients(interaction, type, context.baseUrl)
  const expanded = await expandPanels(context, request, type, filter, named)
  if (expanded.length === 0) return undefined
  const { exactSearches } = await context.profile()
  const isSendable = exactSearches ? () => true : createSendable(type, interaction.params)
  return narrow(type, expanded, narrowing, { compartment, isSendable, memberBy: request.memberBy })
}

/** Whether the caller's own parameters contain this one, with another form of the reference. */
function isRepeated([name, value]: Params[number], own: Params, baseUrl: string): boolean {
  return own.some(([code, text]) => {
    if (code !== name) return false
    const patient = findPatient(text, baseUrl)
    return text === value || (patient !== undefined && `Patient/${patient}` === value)
  })
}

export function createPageCheck(
  { baseUrl }: GatewayContext,
  { interaction }: FhirRequest<Search>,
  types: ReadonlySet<string>,
  { includes, types: parsedTypes }: Pick<Query, 'includes' | 'types'>,
): PageCheck {
  const [isForward, isReverse] = [
    includes.some(it => it.direction === 'forward'),
    includes.some(it => it.direction === 'reverse'),
  ]
  const inCompartment = (resource: Resource) =>
    interaction.kind !== 'search-compartment' || isInCompartment(resource, interaction.id, baseUrl)
  const clauses = new Map(parsedTypes.map(it => [it.type, it.clauses]))
  return {
    matchesQuery: resource =>
      (clauses.get(resource.resourceType) ?? []).every(clause => couldMatch(resource, clause, baseUrl)),
    isMatch: (resource, check) =>
      types.has(resource.resourceType) && inCompartment(resource) && check.allows('s', resource),
    isInclude: (resource, check) =>
      (isForward && check.allows('r', resource)) || (isReverse && check.allows('s', resource)),
    includes: (matches, candidates) => findIncludes(matches, candidates, includes, baseUrl),
  }
}

export function findOneType(interaction: Search): string | undefined {
  return interaction.kind === 'search-system' || interaction.type === '*' ? undefined : interaction.type
}

/** The types of a search: that of the URL, those of `_type`, or all that the caller may search. */
export function findTypes(interaction: Search, access: Access): readonly string[] | Failure {
  const type = findOneType(interaction)
  if (type !== undefined) return [type]
  const named = interaction.params
    .filter(([name]) => name === '_type')
    .flatMap(([, value]) => value.split(','))
  if (!named.every(isResourceType))
    return fail({
      problem: 'bad-search',
      code: 'invalid',
      text: 'Cannot read _type: expected resource types of R4',
    })
  return named.length > 0 ? [...new Set(named)] : resourceTypes.filter(it => hasAccess(access, it, 's'))
}

/**
 * The compartment that is searched for `Patient/[id]/*`. A caller who may see one patient gets the resources that are in
 * both compartments, so the own one is searched: the amount of other data takes no time. Undefined for a patient who is
 * not on the panel.
 */
async function chooseCompartment(
  context: GatewayContext,
  request: FhirRequest,
  types: readonly string[],
  compartment: string,
): Promise<string | undefined> {
  const constraints = types
    .filter(hasCompartment)
    .flatMap(type => listConstraints(request.access.filterFor(type, 's')))
  const panels = new Set<Panel>()
  const patients = new Set<string | undefined>()
  for (const { panel, patient } of constraints)
    if (panel) panels.add(panel)
    else patients.add(patient)
  if (patients.size === 0) {
    const filter = [...panels].map(panel => ({ panel }))
    const expanded = await expandPanels(context, request, '*', filter, [compartment])
    return expanded.length === 0 ? undefined : compartment
  }
  // `undefined` stands for a constraint without a patient.
  const [single] = panels.size === 0 && patients.size === 1 ? patients : []
  return single ?? compartment
}

function listConstraints(filter: AccessFilter): readonly Constraint[] {
  return filter === 'everything' ? [{}] : filter
}
