import {
  isId,
  isInCompartment,
  matches,
  type Params,
  parseReference,
  type Resource,
} from '../../../fhir/index.ts'
import type { AccessCheck, FhirRequest, Search } from '../../../fhir-api/index.ts'
import {
  type Access,
  type AccessFilter,
  type Constraint,
  getQueryKey,
  hasCompartment,
  type Panel,
  satisfies,
} from '../../../smart/index.ts'
import { chunk } from '../chunk.ts'
import type { GatewayContext } from '../context.ts'
import { LIST_VALUES, PORTIONS } from '../limits.ts'
import { listTargets } from './list-targets.ts'
import {
  buildMembershipParams,
  buildPanelParams,
  findMembershipParameter,
  isSearchedInPath,
  isUnlimited,
  type Narrowing,
} from './membership-params.ts'
import type { ExpandedConstraint, ExpandedFilter, PanelExpansion } from './panels.ts'
import { buildScopeClauses, keepClauses, splitAlternatives } from './scope-clauses.ts'
import type { SearchRequest } from './search-request.ts'

/** The searches for the part of each type that the caller may see. */
export async function listSearches(
  context: GatewayContext,
  request: SearchRequest,
  types: readonly string[],
  expansion: PanelExpansion,
): Promise<readonly Portion[]> {
  const { interaction, access, memberBy } = request
  const compartment = interaction.kind === 'search-compartment' ? interaction.id : undefined
  const narrowing = context.narrowing()
  const { exactSearches } = context.profile()
  if (compartment !== undefined && types.length > 1 && narrowing === 'compartment') {
    const of = await chooseCompartment(request, types, compartment, expansion)
    return of === undefined ? [] : [createCompartmentSearch(access, types, of, compartment)]
  }
  const { baseUrl } = context
  const options = { narrowing, exactSearches, own: interaction.params, baseUrl, compartment, memberBy }
  const portions: Portion[] = []
  for (const type of compartment === undefined ? types : types.filter(hasCompartment)) {
    const named = findNamedPatients(interaction, type, baseUrl)
    const filter = await expansion.expand(type, access.filterFor(type, 's'), named)
    portions.push(...listPortions(type, filter, options))
  }
  return portions
}

/** `Patient/[id]/*` */
function createCompartmentSearch(
  access: Access,
  types: readonly string[],
  of: string,
  compartment: string,
): Portion {
  return {
    path: `/Patient/${of}/*`,
    params: [['_type', types.join(',')]],
    replaced: new Set(),
    isComplete: types.every(it => isUnlimited(access.filterFor(it, 's'), compartment)),
    finds: () => true,
  }
}

/**
 * The compartment that is searched for `Patient/[id]/*`. A caller who may see one patient gets the resources that are in
 * both compartments, so the caller's own is searched: the amount of other data takes no time. Undefined for a patient who is
 * not on the panel.
 */
async function chooseCompartment(
  request: FhirRequest,
  types: readonly string[],
  compartment: string,
  expansion: PanelExpansion,
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
    const expanded = await expansion.expand('*', filter, [compartment])
    return expanded.length === 0 ? undefined : compartment
  }
  // `undefined` stands for a constraint without a patient.
  const [single] = panels.size === 0 && patients.size === 1 ? patients : []
  return single ?? compartment
}

function listConstraints(filter: AccessFilter): readonly Constraint[] {
  return filter === 'everything' ? [{}] : filter
}

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

export function findPatient(text: string, baseUrl: string): string | undefined {
  if (isId(text)) return text
  const reference = parseReference(text, baseUrl)
  return reference?.type === 'Patient' ? reference.id : undefined
}

/** A search of one type for a part of an access filter. All portions together find what the filter allows. */
export interface Portion {
  readonly path: string
  /** Added to those of the caller: repeated parameters all apply (R4 search.html#combining). */
  readonly params: Params
  /** Parameters of the caller that are not sent, because the added ones are narrower. */
  readonly replaced: ReadonlySet<Params[number]>
  /** Whether path and parameters express this part of the filter, so that few matches are outside it. */
  readonly isComplete: boolean
  /** Whether this search finds a resource too, that another portion has found. */
  finds(resource: Resource, check: AccessCheck): boolean
}

export interface PortionOptions {
  readonly narrowing: Narrowing
  /** Whether the upstream reads searches as R4 defines. */
  readonly exactSearches: boolean
  /** The caller's own parameters. */
  readonly own: Params
  readonly baseUrl: string
  /** The patient of a compartment search. */
  readonly compartment?: string | undefined
  /** The parameter that finds the resources of the filter's patients, where it is not the usual one of the type. */
  readonly memberBy?: string | undefined
}

/**
 * Divides an access filter into searches, as few as possible. The upstream may still find too much: every entry of its
 * responses is checked.
 */
export function listPortions(
  type: string,
  filter: ExpandedFilter,
  options: PortionOptions,
): readonly Portion[] {
  const isEvaluable = ({ query = [] }: ExpandedConstraint) =>
    query.every(
      ([name, value]) => matches({ resourceType: type }, name, value, options.baseUrl) !== undefined,
    )
  // A clause that cannot be evaluated grants nothing.
  const constraints = filter === 'everything' ? [{}] : dropCovered(filter.filter(isEvaluable))
  const split = options.exactSearches
    ? constraints
    : constraints.flatMap(it =>
        it.query ? splitAlternatives(type, it.query, options.baseUrl).map(query => ({ ...it, query })) : [it],
      )
  const groups = groupAlike(split)
  if (groups.length <= PORTIONS) return groups.flatMap(splitLists).map(it => createPortion(type, it, options))
  return groupAlike(constraints.map(({ query: _, ...subject }) => subject))
    .flatMap(splitLists)
    .map(it => ({ ...createPortion(type, it, options), isComplete: false }))
}

/** Leaves out patients whom a panel with the same clauses contains, such as the patient of the launch. */
function dropCovered(constraints: readonly ExpandedConstraint[]): readonly ExpandedConstraint[] {
  const panels = constraints.filter(({ panel, patient }) => panel && patient === undefined)
  const isCovered = ({ patient = '', query }: ExpandedConstraint) =>
    panels.some(it => it.panel?.patients.has(patient) && getQueryKey(it.query) === getQueryKey(query))
  return panels.length === 0 ? constraints : constraints.filter(it => !isCovered(it))
}

/** Constraints that one search can express: they differ only in their patients, or only in their ids. */
function groupAlike(constraints: readonly ExpandedConstraint[]): readonly (readonly ExpandedConstraint[])[] {
  const groups = Map.groupBy(constraints, constraint => {
    const { patient, panel, id, query } = constraint
    if (patient === undefined && panel) return constraint
    return `${patient !== undefined ? 'patient' : id !== undefined ? 'id' : ''} ${getQueryKey(query)}`
  })
  return [...groups.values()]
}

/** Lists that are too long for one search become several. */
function splitLists(group: readonly ExpandedConstraint[]): readonly (readonly ExpandedConstraint[])[] {
  return chunk(group, LIST_VALUES)
}

function createPortion(
  type: string,
  group: readonly ExpandedConstraint[],
  { narrowing, exactSearches, own, baseUrl, compartment, memberBy }: PortionOptions,
): Portion {
  const [{ query = [], panel, id, isOpen } = {}] = group
  const code = memberBy ?? findMembershipParameter(type)
  const patients = new Set(group.flatMap(({ patient }) => patient ?? []))
  const [single] = patients.size === 1 ? patients : []
  const inPath = isSearchedInPath(type, narrowing) && memberBy === undefined
  const pathPatient = inPath ? (compartment ?? single) : undefined
  const isInPath = pathPatient !== undefined && pathPatient === single
  const compartmentParams =
    pathPatient === undefined && compartment !== undefined ? buildMembershipParams(type, [compartment]) : []
  const subjectParams = buildSubjectParams()
  const isOfAll = patients.size === 0 && !panel && id === undefined
  const clauses = exactSearches ? keepClauses(query) : buildScopeClauses(type, query, own, baseUrl)
  return {
    path: pathPatient === undefined ? `/${type}` : `/Patient/${pathPatient}/${type}`,
    params: [...compartmentParams, ...subjectParams, ...clauses.params],
    replaced: clauses.replaced,
    isComplete: (isInPath || isOfAll || subjectParams.length > 0) && clauses.isComplete,
    finds: (resource, check) =>
      resource.resourceType === type && satisfies(resource, [{ query }], baseUrl) && isOf(resource, check),
  }

  function buildSubjectParams(): Params {
    if (patients.size > 0) return isInPath ? [] : buildMembershipParams(type, [...patients], code)
    if (panel) return isOpen ? [] : buildPanelParams(type, panel, code)
    return id === undefined ? [] : [['_id', group.map(it => it.id).join()]]
  }

  function isOf(resource: Resource, check: AccessCheck): boolean {
    if (isInPath) return isInCompartment(resource, pathPatient, baseUrl)
    const named = () => listPatients(resource, code, baseUrl)
    if (patients.size > 0) return named().some(it => patients.has(it))
    if (panel) return isOpen === true || named().some(it => check.isMember(panel, it))
    return id === undefined || group.some(it => it.id === resource.id)
  }
}

/** The patients by whom a membership parameter finds a resource. */
function listPatients(resource: Resource, code: string | undefined, baseUrl: string): readonly string[] {
  if (resource.resourceType === 'Patient') return [resource.id ?? '']
  return code === undefined ? [] : listTargets(resource, code, 'Patient', baseUrl)
}
