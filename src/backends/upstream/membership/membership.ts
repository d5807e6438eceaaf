import { fail, indexResource, type Params, type Resource } from '../../../fhir/index.ts'
import { type Failure, type FhirRequest, isFailure } from '../../../fhir-api/index.ts'
import { fullAccess, type Panel, type PanelMembership } from '../../../smart/index.ts'
import type { GatewayContext } from '../context.ts'
import { buildSearch, NO_CACHE, setCacheControl } from '../http/build-request.ts'
import { failTooCostly } from '../http/failure.ts'
import { CARE_TEAMS } from '../limits.ts'
import type { PageCheck } from '../search/pages.ts'
import { visitPages } from '../search/pages.ts'

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
export function buildTeamParams(panels: readonly Panel[]): Params {
  const listed = new Set(panels.flatMap(({ careTeams }) => careTeams))
  const members = new Set(panels.flatMap(({ member }) => (member ? [`${member.type}/${member.id}`] : [])))
  const params: (readonly [string, string])[] = []
  if (listed.size > 0) params.push(['_id', [...listed].join()])
  if (members.size > 0) params.push(['participant', [...members].join()])
  return params
}

/** An active care team. A team with another status gives no access. */
export interface Team {
  readonly id: string | undefined
  readonly patients: ReadonlySet<string>
  readonly members: ReadonlySet<string>
}

export function usesTeams({ careTeams, member }: Panel): boolean {
  return careTeams.length > 0 || member !== undefined
}

export function isTeamOfPanel({ id, members }: Team, { careTeams, member }: Panel): boolean {
  return (
    (id !== undefined && careTeams.includes(id)) ||
    (member !== undefined && members.has(`${member.type}/${member.id}`))
  )
}

function findPatients(context: GatewayContext, request: FhirRequest, ids: readonly string[]) {
  return findForPolicy(context, request, 'Patient', [['_id', ids.join()]], ids.length)
}

export async function findTeams(
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
  const outgoing = setCacheControl(buildSearch(request, `/${type}`, sent, false, context.urls), NO_CACHE)
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
