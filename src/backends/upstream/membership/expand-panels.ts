import { isProblem } from '../../../fhir/index.ts'
import type { AccessFilter, Constraint, Panel } from '../../../smart/index.ts'
import type { Call, Context } from '../context.ts'
import { buildTeamParams, findForPolicy, findMembers, findTeams, isByTeam, isOfPanel } from './membership.ts'

/** More would not fit into an address. */
const LISTED = 100

/**
 * A reach in words that a search can say: single patients, or their organization, in the place of panels. It is for
 * looking no further than has to be; a panel of too many patients stays as it is, and what comes back is judged anyway.
 */
export async function expandPanels(
  context: Context,
  call: Call,
  type: string,
  filter: AccessFilter,
  named: readonly string[] | undefined,
): Promise<AccessFilter> {
  if (filter === 'everything' || !filter.some(limit => limit.panel)) return filter
  const limits: Constraint[] = []
  for (const limit of filter)
    limits.push(...(limit.panel ? await limitsOf(context, call, type, limit, limit.panel, named) : [limit]))
  return limits
}

async function limitsOf(
  context: Context,
  call: Call,
  type: string,
  limit: Constraint,
  panel: Panel,
  named: readonly string[] | undefined,
): Promise<readonly Constraint[]> {
  const { panel: _, ...rest } = limit
  const isManaged = panel.patients.size === 0 && !isByTeam(panel) && panel.organizations.length > 0
  if (!named && type === 'Patient' && isManaged)
    return [{ ...rest, query: [...(limit.query ?? []), managedBy(panel)] }]
  const patients = named ? await onPanel(context, call, panel, named) : await listed(context, call, panel)
  return patients ? [...patients].map(patient => ({ ...rest, patient })) : [limit]
}

function managedBy({ organizations }: Panel): readonly [string, string] {
  return ['organization', organizations.map(id => `Organization/${id}`).join()]
}

/** Those of a search's own patients who are on the panel. */
async function onPanel(
  context: Context,
  call: Call,
  panel: Panel,
  named: readonly string[],
): Promise<ReadonlySet<string> | undefined> {
  const membership = await findMembers(context, call, [panel], new Set(named))
  if (isProblem(membership)) return undefined
  return new Set(named.filter(id => panel.patients.has(id) || membership.includes(panel, id)))
}

/** The patients on a panel, as the upstream's data are now; undefined when they are many, or it does not tell. */
async function listed(context: Context, call: Call, panel: Panel): Promise<ReadonlySet<string> | undefined> {
  const teams = await Promise.all(buildTeamParams([panel]).map(it => findTeams(context, call, [it])))
  const managed =
    panel.organizations.length > 0
      ? await findForPolicy(context, call, 'Patient', [managedBy(panel)], LISTED)
      : []
  const patients = new Set(panel.patients)
  for (const some of teams) {
    if (isProblem(some)) return undefined
    for (const team of some.filter(it => isOfPanel(it, panel)))
      for (const patient of team.patients) patients.add(patient.slice('Patient/'.length))
  }
  if (isProblem(managed)) return undefined
  for (const { id } of managed) if (id !== undefined) patients.add(id)
  return patients.size > LISTED ? undefined : patients
}
