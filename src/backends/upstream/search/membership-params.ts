import { findSearchParameter, listCompartmentParameters, type Params } from '../../../fhir/index.ts'
import type { AccessFilter, Panel } from '../../../smart/index.ts'

export type Narrowing = 'compartment' | 'parameter'

// Not in the R4 CompartmentDefinition, or there with other parameters (PATIENT-2).
const BY_PARAMETER: ReadonlySet<string> = new Set(['Patient', 'Binary', 'Device', 'Group', 'Task'])

/** Whether the path of a search may name the compartment of one patient. */
export function isSearchedInPath(type: string, narrowing: Narrowing): boolean {
  return narrowing === 'compartment' && !BY_PARAMETER.has(type)
}

/** Whether a filter is everything, or a whole compartment. */
export function isUnlimited(filter: AccessFilter, compartment: string | undefined): boolean {
  return (
    filter === 'everything' ||
    (compartment !== undefined && filter.some(({ patient, query }) => patient === compartment && !query))
  )
}

/** The resources of patients. */
export function buildMembershipParams(
  type: string,
  patients: readonly string[],
  code = findMembershipParameter(type),
): Params {
  if (patients.length === 0) return []
  if (type === 'Patient') return [['_id', patients.join(',')]]
  return code === undefined ? [] : [[code, patients.map(it => `Patient/${it}`).join(',')]]
}

/**
 * The resources of patients by care teams, by the member of their care teams, or by organizations: the upstream follows the
 * references.
 */
export function buildPanelParams(
  type: string,
  { organizations, careTeams, member }: Panel,
  code = findMembershipParameter(type),
): Params {
  if (type !== 'Patient' && code === undefined) return []
  const ofPatient = type === 'Patient' ? '' : `${code}:Patient.`
  const ofTeam = `${ofPatient}_has:CareTeam:patient:`
  if (careTeams.length > 0) return [[`${ofTeam}_id`, careTeams.join()]]
  if (member) return [[`${ofTeam}participant`, `${member.type}/${member.id}`]]
  return [[`${ofPatient}organization`, organizations.map(id => `Organization/${id}`).join()]]
}

/** Every server knows `patient`; types without it have one membership parameter. */
export function findMembershipParameter(type: string): string | undefined {
  const members = listCompartmentParameters(type)
  if (members.length === 0) return undefined
  if (findSearchParameter(type, 'patient')?.type === 'reference') return 'patient'
  return members[0]
}

/** The parameters that together find the compartments of a filter's patients; undefined where one search finds all. */
export function listMembershipParameters(
  type: string,
  filter: AccessFilter,
  narrowing: Narrowing,
): readonly string[] | undefined {
  if (filter === 'everything' || filter.some(({ patient, panel }) => patient === undefined && !panel))
    return undefined
  const isOne = new Set(filter.map(({ patient }) => patient)).size === 1 && filter.every(it => !it.panel)
  const usual = findMembershipParameter(type)
  if ((isSearchedInPath(type, narrowing) && isOne) || usual === undefined || type === 'Patient')
    return undefined
  const others = listCompartmentParameters(type).filter(it => it !== usual)
  return [usual, ...others.filter(it => usual !== 'patient' || it !== 'subject')]
}
