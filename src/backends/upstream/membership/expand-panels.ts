import { type FhirRequest, isFailure } from '../../../fhir-api/index.ts'
import type { AccessFilter, Constraint, Panel } from '../../../smart/index.ts'
import type { GatewayContext } from '../context.ts'
import {
  buildTeamParams,
  findForPolicy,
  findMembers,
  findTeams,
  isTeamOfPanel,
  usesTeams,
} from './membership.ts'

/** More ids do not fit into a URL. */
const MOST_PATIENTS = 100

/**
 * Replaces panels by constraints that search parameters can express: patients, or their organization. It only narrows
 * the search: a panel of too many patients is kept, and every response is checked.
 */
export async function expandPanels(
  context: GatewayContext,
  request: FhirRequest,
  type: string,
  filter: AccessFilter,
  named: readonly string[] | undefined,
): Promise<AccessFilter> {
  if (filter === 'everything' || !filter.some(constraint => constraint.panel)) return filter
  const constraints: Constraint[] = []
  for (const constraint of filter)
    constraints.push(
      ...(constraint.panel
        ? await expandConstraint(context, request, type, constraint, constraint.panel, named)
        : [constraint]),
    )
  return constraints
}

async function expandConstraint(
  context: GatewayContext,
  request: FhirRequest,
  type: string,
  constraint: Constraint,
  panel: Panel,
  named: readonly string[] | undefined,
): Promise<readonly Constraint[]> {
  const { panel: _, ...rest } = constraint
  const isManaged = panel.patients.size === 0 && !usesTeams(panel) && panel.organizations.length > 0
  if (!named && type === 'Patient' && isManaged)
    return [{ ...rest, query: [...(constraint.query ?? []), buildOrganizationParam(panel)] }]
  const patients = named
    ? await filterByPanel(context, request, panel, named)
    : await listPanelPatients(context, request, panel)
  return patients ? [...patients].map(patient => ({ ...rest, patient })) : [constraint]
}

function buildOrganizationParam({ organizations }: Panel): readonly [string, string] {
  return ['organization', organizations.map(id => `Organization/${id}`).join()]
}

/** The patients named by a search who are on the panel. */
async function filterByPanel(
  context: GatewayContext,
  request: FhirRequest,
  panel: Panel,
  named: readonly string[],
): Promise<ReadonlySet<string> | undefined> {
  const membership = await findMembers(context, request, [panel], new Set(named))
  if (isFailure(membership)) return undefined
  return new Set(named.filter(id => panel.patients.has(id) || membership.includes(panel, id)))
}

/** The patients on a panel by the upstream's current data; undefined if there are too many, or they cannot be found. */
async function listPanelPatients(
  context: GatewayContext,
  request: FhirRequest,
  panel: Panel,
): Promise<ReadonlySet<string> | undefined> {
  const teams = await Promise.all(buildTeamParams([panel]).map(it => findTeams(context, request, [it])))
  const managed =
    panel.organizations.length > 0
      ? await findForPolicy(context, request, 'Patient', [buildOrganizationParam(panel)], MOST_PATIENTS)
      : []
  const patients = new Set(panel.patients)
  for (const some of teams) {
    if (isFailure(some)) return undefined
    for (const team of some.filter(it => isTeamOfPanel(it, panel)))
      for (const patient of team.patients) patients.add(patient.slice('Patient/'.length))
  }
  if (isFailure(managed)) return undefined
  for (const { id } of managed) if (id !== undefined) patients.add(id)
  return patients.size > MOST_PATIENTS ? undefined : patients
}
