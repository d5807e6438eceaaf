import { isId, parseReference } from '../../../fhir/index.ts'
import type { FhirRequest, Search } from '../../../fhir-api/index.ts'
import {
  type Access,
  type AccessFilter,
  type Constraint,
  hasCompartment,
  type Panel,
} from '../../../smart/index.ts'
import type { GatewayContext } from '../context.ts'
import { isUnlimited } from './membership-params.ts'
import type { PanelExpansion } from './panels.ts'
import { listPortions, type Portion } from './portions.ts'
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
