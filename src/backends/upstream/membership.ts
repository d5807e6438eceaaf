import { fail, indexResource, type Params, type Resource } from '../../fhir/index.ts'
import { type Failure, type FhirRequest, isFailure } from '../../fhir-api/index.ts'
import {
  type AccessFilter,
  type Constraint,
  fullAccess,
  type Panel,
  type PanelMembership,
} from '../../smart/index.ts'
import type { GatewayContext } from './context.ts'
import { buildSearch, NO_STORE, setCacheControl } from './http/build-request.ts'
import { failTooCostly } from './http/response.ts'
import { CARE_TEAMS } from './limits.ts'
import { type PageCheck, visitPages } from './search/pages.ts'

/** The number of ids that fit into one URL. */
const IDS_AT_ONCE = 50

/**
 * Finds which patients are on the panels, by the upstream's current data. Nothing is cached, so that a clinician who
 * leaves a care team loses access at once. The response is checked by its content.
 */
export async function findMembers(
  context: GatewayContext,
  request: FhirRequest,
  panels: readonly Panel[],
  patients: ReadonlySet<string>,
): Promise<PanelMembership | Failure> {
  const unlisted = [...patients].filter(id => !panels.every(panel => panel.patients.has(id)))
  const managers = new Map<string, ReadonlySet<string>>()
  const teams: Team[] = []
  for (let at = 0; at < unlisted.length; at += IDS_AT_ONCE) {
    const ids = unlisted.slice(at, at + IDS_AT_ONCE)
    const patientParam = ['patient', ids.map(it => `Patient/${it}`).join()] as const
    const [managed, ...caring] = await Promise.all([
      panels.some(it => it.organizations.length > 0) ? findPatients(context, request, ids) : [],
      ...buildTeamParams(panels).map(it => findTeams(context, request, [patientParam, it])),
    ])
    if (isFailure(managed)) return managed
    for (const it of managed) managers.set(String(it.id), listReferences(it, 'organization', context.baseUrl))
    for (const some of caring) {
      if (isFailure(some)) return some
      teams.push(...some)
    }
  }
  return {
    includes: (panel, patient) =>
      panel.organizations.some(id => managers.get(patient)?.has(`Organization/${id}`)) ||
      teams.some(team => team.patients.has(`Patient/${patient}`) && isTeamOfPanel(team, panel)),
  }
}

/** The parameters that select the care teams of the panels. */
function buildTeamParams(panels: readonly Panel[]): Params {
  const listed = new Set(panels.flatMap(({ careTeams }) => careTeams))
  const members = new Set(panels.flatMap(({ member }) => (member ? [`${member.type}/${member.id}`] : [])))
  const params: (readonly [string, string])[] = []
  if (listed.size > 0) params.push(['_id', [...listed].join()])
  if (members.size > 0) params.push(['participant', [...members].join()])
  return params
}

/** An active care team. A team with another status gives no access. */
interface Team {
  readonly id: string | undefined
  readonly patients: ReadonlySet<string>
  readonly members: ReadonlySet<string>
}

function usesTeams({ careTeams, member }: Panel): boolean {
  return careTeams.length > 0 || member !== undefined
}

function isTeamOfPanel({ id, members }: Team, { careTeams, member }: Panel): boolean {
  return (
    (id !== undefined && careTeams.includes(id)) ||
    (member !== undefined && members.has(`${member.type}/${member.id}`))
  )
}

function findPatients(context: GatewayContext, request: FhirRequest, ids: readonly string[]) {
  return findForPolicy(context, request, 'Patient', [['_id', ids.join()]], ids.length)
}

async function findTeams(
  context: GatewayContext,
  request: FhirRequest,
  params: Params,
): Promise<readonly Team[] | Failure> {
  const all = await findForPolicy(context, request, 'CareTeam', [...params, ['status', 'active']], CARE_TEAMS)
  if (isFailure(all)) return all
  return all
    .filter(it => it.status === 'active')
    .map(it => ({
      id: it.id,
      patients: listReferences(it, 'patient', context.baseUrl),
      members: listReferences(it, 'participant', context.baseUrl),
    }))
}

const OWN = new Set<Failure['problem']>(['upstream-unreachable', 'upstream-late', 'too-costly'])

/** Resources that the gateway itself needs. The upstream's reason for a failure is not passed to the caller. */
export async function findForPolicy(
  context: GatewayContext,
  request: FhirRequest,
  type: string,
  params: Params,
  most: number,
): Promise<readonly Resource[] | Failure> {
  const sent: Params = [...params, ['_count', '500']]
  const outgoing = setCacheControl(buildSearch(request, `/${type}`, sent, false, context.urls), NO_STORE)
  const resources: Resource[] = []
  const own = { ...request, access: fullAccess }
  const outcome = await visitPages(context, own, outgoing, createTypeCheck(type), most, ({ matches }) => {
    for (const it of matches) resources.push(it.resource)
  })
  if (typeof outcome === 'number') return resources
  if (outcome === 'too-many') return failTooCostly(most)
  return OWN.has(outcome.problem)
    ? outcome
    : fail({ problem: 'upstream-broken', why: `it does not return the ${type}s that the policy needs` })
}

function createTypeCheck(type: string): PageCheck {
  return { isMatch: it => it.resourceType === type, isInclude: () => false, includes: () => [] }
}

function listReferences(resource: Resource, parameter: string, baseUrl: string): ReadonlySet<string> {
  return new Set(
    indexResource(resource, baseUrl).flatMap(entry =>
      entry.kind === 'reference' && entry.parameter === parameter && entry.type !== undefined
        ? [`${entry.type}/${entry.id}`]
        : [],
    ),
  )
}

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
