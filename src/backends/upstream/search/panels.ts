import { setImmediate } from 'node:timers/promises'
import { isFailure } from '../../../core/index.ts'
import type { Failure, FhirRequest } from '../../../fhir-api/index.ts'
import type { AccessFilter, Constraint, Panel, PanelMembership } from '../../../smart/index.ts'
import { chunk } from '../chunk.ts'
import type { GatewayContext } from '../context.ts'
import { LIST_VALUES, LISTED_PATIENTS } from '../limits.ts'
import { createTeamTest, type KnownTeams, type Team } from '../team.ts'
import {
  buildTeamParams,
  findAllTeams,
  findForPolicy,
  findMembers,
  findTeamsOfMember,
  joinLookup,
} from './membership.ts'

/** A constraint that search parameters can express. Its panel is by organizations, by care teams or by a member. */
export interface ExpandedConstraint extends Constraint {
  /** The panel cannot be expressed. */
  readonly isOpen?: true
}

export type ExpandedFilter = 'everything' | readonly ExpandedConstraint[]

/** The panels of one search. */
export interface PanelExpansion {
  /**
   * Replaces the panels of a filter, for a search that names these patients, or none. It only narrows the search: every
   * response is checked. A panel is looked up once, however many types a search has.
   */
  expand(type: string, filter: AccessFilter, named: readonly string[] | undefined): Promise<ExpandedFilter>
  /** The context of the same search. It knows the membership that was looked up, which is not requested again. */
  readonly context: GatewayContext
}

export function createPanelExpansion(context: GatewayContext, request: FhirRequest): PanelExpansion {
  const expanded = new Map<Panel, Map<string, Promise<Expanded | undefined>>>()
  const known: KnownTeams[] = []
  const asked = new Map<Panel, AskedMembers>()

  function expandPanel(panel: Panel, type: string, named: readonly string[] | undefined) {
    const ofPanel = expanded.get(panel) ?? new Map<string, Promise<Expanded | undefined>>()
    expanded.set(panel, ofPanel)
    const key = named ? `named ${named}` : type === 'Patient' ? type : ''
    const found =
      ofPanel.get(key) ??
      (named
        ? filterByPanel(context, request, panel, named, asked)
        : dividePanel(context, request, panel, type, known))
    ofPanel.set(key, found)
    return found
  }

  return {
    async expand(type, filter, named) {
      if (filter === 'everything' || !filter.some(constraint => constraint.panel)) return filter
      const constraints: ExpandedConstraint[] = []
      for (const constraint of filter) {
        const { panel, ...rest } = constraint
        const parts = panel && (await expandPanel(panel, type, named))
        if (!panel) constraints.push(constraint)
        else if (!parts) constraints.push({ ...constraint, isOpen: true })
        else {
          for (const patient of parts.patients) constraints.push({ ...rest, patient })
          for (const part of parts.panels) constraints.push({ ...rest, panel: part })
        }
      }
      return constraints
    },
    context: {
      ...context,
      async findMembers(own, asking, panels, patients) {
        const [panel, another] = panels
        const found = panel && !another ? asked.get(panel) : undefined
        return found && patients.isSubsetOf(found.patients)
          ? found.membership
          : findMembers(own, asking, panels, patients, known)
      },
    },
  }
}

/** Patients, and panels of one kind, that together are a panel. */
interface Expanded {
  readonly patients: readonly string[]
  readonly panels: readonly Panel[]
}

/** The patients whose membership was looked up. */
interface AskedMembers {
  readonly patients: ReadonlySet<string>
  readonly membership: PanelMembership
}

/** The patients named by a search who are on the panel. */
async function filterByPanel(
  context: GatewayContext,
  request: FhirRequest,
  panel: Panel,
  named: readonly string[],
  asked: Map<Panel, AskedMembers>,
): Promise<Expanded | undefined> {
  const patients = new Set(named)
  const teams = await joinTeams(context, request, panel)
  const membership = await findMembers(context, request, [panel], patients, teams)
  if (isFailure(membership)) return undefined
  asked.set(panel, { patients, membership })
  return {
    patients: named.filter(id => panel.patients.has(id) || membership.includes(panel, id)),
    panels: [],
  }
}

/** The teams of the member that another request of the same caller looks up: the portal lists patients, and reads the recent ones. */
async function joinTeams(
  context: GatewayContext,
  request: FhirRequest,
  { member }: Panel,
): Promise<readonly KnownTeams[]> {
  if (!member) return []
  // Requests that came together begin their lookups first.
  await setImmediate()
  const name = `${member.type}/${member.id}`
  const teams = await joinLookup(context, request, name)
  return teams === undefined || teams === 'too-many' ? [] : [{ member: name, teams }]
}

/** Undefined if the patients cannot be found, or are too many for an upstream that follows no chains. */
async function dividePanel(
  context: GatewayContext,
  request: FhirRequest,
  panel: Panel,
  type: string,
  known: KnownTeams[],
): Promise<Expanded | undefined> {
  const [teams, organizations] = await Promise.all([
    divideTeams(context, request, panel, known),
    divideOrganizations(context, request, panel, type),
  ])
  if (isFailure(teams) || isFailure(organizations)) return undefined
  return {
    patients: [...new Set([...panel.patients, ...teams.patients, ...organizations.patients])],
    panels: [...teams.panels, ...organizations.panels],
  }
}

const NOBODY: Panel = { patients: new Set(), organizations: [], careTeams: [] }

/**
 * The patients of few teams are found by the ids of the teams: a search by the member would also find patients whom the
 * member no longer treats.
 */
async function divideTeams(
  context: GatewayContext,
  request: FhirRequest,
  panel: Panel,
  known: KnownTeams[],
): Promise<Expanded | Failure> {
  const { careTeams, member } = panel
  const name = member && `${member.type}/${member.id}`
  const found = name === undefined ? undefined : await findTeamsOfMember(context, request, name)
  if (isFailure(found)) return found
  if (name !== undefined && found !== undefined && found !== 'too-many')
    known.push({ member: name, teams: found })
  const few = found === 'too-many' ? found : (found?.all ?? [])
  if (careTeams.length === 0 && few.length === 0) return { patients: [], panels: [] }
  return (await context.followsChains())
    ? { patients: [], panels: listTeamPanels(panel, few) }
    : listTeamPatients(context, request, panel, few)
}

/** Panels by the ids of teams, and by the member whose teams are too many. */
function listTeamPanels(panel: Panel, few: readonly Team[] | 'too-many'): readonly Panel[] {
  const { careTeams, member } = panel
  const own = few === 'too-many' ? [] : few.filter(createTeamTest(panel))
  const patients = new Map<string, readonly string[]>(careTeams.map(id => [id, []]))
  for (const team of own) if (team.id !== undefined) patients.set(team.id, team.patients)
  const byIds = chunk([...patients], LIST_VALUES).map(some => ({
    ...NOBODY,
    patients: new Set(some.flatMap(([, ids]) => ids)),
    careTeams: some.map(([id]) => id),
  }))
  return few === 'too-many' && member ? [...byIds, { ...NOBODY, member }] : byIds
}

async function listTeamPatients(
  context: GatewayContext,
  request: FhirRequest,
  panel: Panel,
  few: readonly Team[] | 'too-many',
): Promise<Expanded | Failure> {
  const searches = [
    ...(panel.careTeams.length > 0 ? [['_id', panel.careTeams.join()] as const] : []),
    ...(few === 'too-many' ? buildTeamParams([{ ...panel, careTeams: [] }]) : []),
  ]
  const found = await findAllTeams(
    context,
    request,
    searches.map(param => [param]),
    LISTED_PATIENTS,
  )
  if (isFailure(found)) return found
  const teams = few === 'too-many' ? found : [...few, ...found]
  return { patients: teams.filter(createTeamTest(panel)).flatMap(it => it.patients), panels: [] }
}

async function divideOrganizations(
  context: GatewayContext,
  request: FhirRequest,
  { organizations }: Panel,
  type: string,
): Promise<Expanded | Failure> {
  if (organizations.length === 0) return { patients: [], panels: [] }
  if (type === 'Patient' || (await context.followsChains()))
    return { patients: [], panels: [{ ...NOBODY, organizations }] }
  const byOrganization = [['organization', organizations.map(id => `Organization/${id}`).join()]] as const
  const patients = await findForPolicy(context, request, 'Patient', byOrganization, LISTED_PATIENTS)
  return isFailure(patients) ? patients : { patients: patients.flatMap(({ id }) => id ?? []), panels: [] }
}
