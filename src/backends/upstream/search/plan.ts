import {
  couldMatch,
  fail,
  findCompartmentPatients,
  isId,
  isProblem,
  isResourceType,
  type Params,
  parseQuery,
  parseReference,
  type Query,
  type Resource,
  resourceTypes,
} from '../../../fhir/index.ts'
import type { Search } from '../../../fhir-api/index.ts'
import type { Access } from '../../../smart/index.ts'
import { type AccessFilter, type Constraint, hasCompartment, type Panel } from '../../../smart/index.ts'
import type { Call, Context } from '../context.ts'
import { buildSearch, withStrict } from '../http/build-request.ts'
import type { UpstreamRequest } from '../http/exchange.ts'
import { expandPanels } from '../membership/expand-panels.ts'
import type { Problem } from '../problem.ts'
import type { PageCheck } from './fetch-page.ts'
import { findConnected } from './includes.ts'
import { isUnlimited, type Narrowed, narrow } from './narrow.ts'
import { hasAccess, narrowIncludes } from './narrow-includes.ts'

const OF_PATIENT = /^(?:patient|subject)(?::Patient)?$/

/** The patients whom a search is for by its own words; undefined where it names none, or not by their ids alone. */
export function findNamedPatients(
  search: Search,
  type: string,
  baseUrl: string,
): readonly string[] | undefined {
  if (search.kind === 'search-compartment') return [search.id]
  const isNaming = (name: string) => (type === 'Patient' ? name === '_id' : OF_PATIENT.test(name))
  const value = search.params.find(([name]) => isNaming(name))?.[1]
  const ids = value?.split(',').map(text => patientIn(text, baseUrl))
  return ids?.every(id => id !== undefined) ? ids : undefined
}

function patientIn(text: string, baseUrl: string): string | undefined {
  if (isId(text)) return text
  const reference = parseReference(text, baseUrl)
  return reference?.type === 'Patient' ? reference.id : undefined
}

/** What is sent to the upstream for a search, and how what comes back is judged. */
export interface Plan {
  readonly query: Query
  /** Undefined when there is nobody whose data could be found. */
  readonly request: UpstreamRequest | undefined
  /** The same for large pages, where matches turn out to be left out. */
  readonly wide: () => UpstreamRequest | undefined
  readonly check: PageCheck
  /** Whether what is sent says all that the caller may see. */
  readonly isExact: boolean
}

/** How many are asked for where most may be left out. */
export const AT_ONCE = 100
/** And at most: what is judged is in memory all at once. */
const MOST_AT_ONCE = 250

/** The parameters, with a page size that suits the gateway. */
export function withPageSize({ used, count }: Pick<Query, 'used' | 'count'>): Params {
  const others = used.filter(([name]) => name !== '_count')
  return [...others, ['_count', String(Math.min(Math.max(count, AT_ONCE), MOST_AT_ONCE))]]
}

// Shaped here, counted here, or said again in a narrower way.
const REPLACED = /^(?:_summary|_elements|_total|_contained|_type|_(?:rev)?include(?::.*)?)$/

export async function planSearch(context: Context, call: Call<Search>): Promise<Plan | Problem> {
  const { interaction, access } = call
  const types = findTypes(interaction, access)
  if (isProblem(types)) return types
  const single = findOneType(interaction)
  const params =
    single === undefined ? interaction.params.filter(([name]) => name !== '_type') : interaction.params
  const isOpaque = ([name]: Params[number]) =>
    single !== undefined && !call.isStrict && context.isForUpstream(single, name)
  const read = parseQuery(
    types,
    params.filter(pair => !isOpaque(pair)),
    context.baseUrl,
    call.preferences.lenient,
  )
  if (isProblem(read)) return read
  const understood = new Set(read.used)
  const query = { ...read, used: params.filter(pair => understood.has(pair) || isOpaque(pair)) }
  const within = await narrowed(context, call, types)
  const isExact = within?.isExact ?? true
  const requestFor = (params: Params) => {
    const own = params.filter(([name]) => !REPLACED.test(name))
    const sent = [...own, ...(within?.params ?? []), ...narrowIncludes(query.includes, access)]
    return (
      within &&
      withStrict(buildSearch(call, within.path, sent, interaction.posted === true, context.addresses))
    )
  }
  return {
    query,
    request: requestFor(isExact ? query.used : withPageSize(query)),
    wide: () => requestFor(withPageSize(query)),
    check: createPageCheck(context, call, new Set(types), query),
    isExact,
  }
}

/** Undefined when there is nobody whose data could be found. */
async function narrowed(
  context: Context,
  call: Call<Search>,
  types: readonly string[],
): Promise<Narrowed | undefined> {
  const { interaction, access } = call
  const type = findOneType(interaction)
  const compartment = interaction.kind === 'search-compartment' ? interaction.id : undefined
  if (type === undefined) {
    const params: Params = [['_type', types.join(',')]]
    const isExact = types.every(it => isUnlimited(access.filterFor(it, 's'), compartment))
    if (compartment === undefined) return { path: '', params, isExact }
    const of = await chooseCompartment(context, call, types, compartment)
    return of === undefined ? undefined : { path: `/Patient/${of}/*`, params, isExact }
  }
  const filter = access.filterFor(type, 's')
  const named = findNamedPatients(interaction, type, context.baseUrl)
  const spelled = await expandPanels(context, call, type, filter, named)
  return spelled.length === 0 ? undefined : narrow(type, spelled, await context.narrowing(), compartment)
}

export function createPageCheck(
  { baseUrl }: Context,
  { interaction }: Call<Search>,
  types: ReadonlySet<string>,
  { includes, types: asked }: Pick<Query, 'includes' | 'types'>,
): PageCheck {
  const [along, against] = [
    includes.some(it => it.direction === 'forward'),
    includes.some(it => it.direction === 'reverse'),
  ]
  const inCompartment = (resource: Resource) =>
    interaction.kind !== 'search-compartment' ||
    findCompartmentPatients(resource, baseUrl).has(interaction.id)
  const clauses = new Map(asked.map(it => [it.type, it.clauses]))
  return {
    isAsked: resource =>
      (clauses.get(resource.resourceType) ?? []).every(clause => couldMatch(resource, clause, baseUrl)),
    isMatch: (resource, judge) =>
      types.has(resource.resourceType) && inCompartment(resource) && judge.allows('s', resource),
    isInclude: (resource, judge) =>
      (along && judge.allows('r', resource)) || (against && judge.allows('s', resource)),
    includes: (matches, candidates) => findConnected(matches, candidates, includes, baseUrl),
  }
}

export function findOneType(interaction: Search): string | undefined {
  return interaction.kind === 'search-system' || interaction.type === '*' ? undefined : interaction.type
}

/** The types that are searched: the one of the address, those that `_type` names, else all that are reached. */
export function findTypes(interaction: Search, access: Access): readonly string[] | Problem {
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
 * Whose compartment is looked through for all of one patient's. A caller of one patient's data is shown what is in both
 * compartments, so the own is looked through: how much there is of others takes no time. Undefined for a patient off the
 * panel.
 */
async function chooseCompartment(
  context: Context,
  call: Call,
  types: readonly string[],
  compartment: string,
): Promise<string | undefined> {
  const limits = types.filter(hasCompartment).flatMap(type => limitsOf(call.access.filterFor(type, 's')))
  const panels = new Set<Panel>()
  const patients = new Set<string | undefined>()
  for (const { panel, patient } of limits)
    if (panel) panels.add(panel)
    else patients.add(patient)
  if (patients.size === 0) {
    const filter = [...panels].map(panel => ({ panel }))
    const spelled = await expandPanels(context, call, '*', filter, [compartment])
    return spelled.length === 0 ? undefined : compartment
  }
  // One of them may be undefined: everybody's data of a type.
  const [single] = panels.size === 0 && patients.size === 1 ? patients : []
  return single ?? compartment
}

function limitsOf(filter: AccessFilter): readonly Constraint[] {
  return filter === 'everything' ? [{}] : filter
}
