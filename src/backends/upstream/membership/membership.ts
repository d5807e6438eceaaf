import { fail, indexResource, isProblem, type Params, type Resource } from '../../../fhir/index.ts'
import { fullAccess, type Panel, type PanelMembership } from '../../../smart/index.ts'
import type { Call, Context } from '../context.ts'
import { buildSearch } from '../http/build-request.ts'
import { CARE_TEAMS } from '../limits.ts'
import type { Problem } from '../problem.ts'
import type { PageCheck } from '../search/fetch-page.ts'
import { visitPages } from '../search/visit-pages.ts'

/** Asked about in one request: so many ids fit into an address. */
const TOGETHER = 50

/**
 * Asks the upstream whose patients these are, as its data are now: nothing is kept, so that who leaves a care team is
 * out of reach at once. What it answers is judged by its content, whatever it was asked.
 */
export async function findMembers(
  context: Context,
  call: Call,
  panels: readonly Panel[],
  patients: ReadonlySet<string>,
): Promise<PanelMembership | Problem> {
  const unknown = [...patients].filter(id => !panels.every(panel => panel.patients.has(id)))
  const managers = new Map<string, ReadonlySet<string>>()
  const teams: Team[] = []
  for (let at = 0; at < unknown.length; at += TOGETHER) {
    const ids = unknown.slice(at, at + TOGETHER)
    const ofPatients = ['patient', ids.map(it => `Patient/${it}`).join()] as const
    const [managed, ...caring] = await Promise.all([
      panels.some(it => it.organizations.length > 0) ? patientsBy(context, call, ids) : [],
      ...buildTeamParams(panels).map(it => findTeams(context, call, [ofPatients, it])),
    ])
    if (isProblem(managed)) return managed
    for (const it of managed) managers.set(String(it.id), referredBy(it, 'organization', context.baseUrl))
    for (const some of caring) {
      if (isProblem(some)) return some
      teams.push(...some)
    }
  }
  return {
    includes: (panel, patient) =>
      panel.organizations.some(id => managers.get(patient)?.has(`Organization/${id}`)) ||
      teams.some(team => team.patients.has(`Patient/${patient}`) && isOfPanel(team, panel)),
  }
}

/** Which care teams matter: a patient may have any number of others. */
export function buildTeamParams(panels: readonly Panel[]): Params {
  const listed = new Set(panels.flatMap(({ careTeams }) => careTeams))
  const members = new Set(panels.flatMap(({ member }) => (member ? [`${member.type}/${member.id}`] : [])))
  const params: (readonly [string, string])[] = []
  if (listed.size > 0) params.push(['_id', [...listed].join()])
  if (members.size > 0) params.push(['participant', [...members].join()])
  return params
}

/** A care team at work: a proposed, suspended, ended or mistaken one gives no right. */
export interface Team {
  readonly id: string | undefined
  readonly patients: ReadonlySet<string>
  readonly members: ReadonlySet<string>
}

export function isByTeam({ careTeams, member }: Panel): boolean {
  return careTeams.length > 0 || member !== undefined
}

export function isOfPanel({ id, members }: Team, { careTeams, member }: Panel): boolean {
  return (
    (id !== undefined && careTeams.includes(id)) ||
    (member !== undefined && members.has(`${member.type}/${member.id}`))
  )
}

function patientsBy(context: Context, call: Call, ids: readonly string[]) {
  return findForPolicy(context, call, 'Patient', [['_id', ids.join()]], ids.length)
}

export async function findTeams(
  context: Context,
  call: Call,
  params: Params,
): Promise<readonly Team[] | Problem> {
  const all = await findForPolicy(context, call, 'CareTeam', [...params, ['status', 'active']], CARE_TEAMS)
  if (isProblem(all)) return all
  return all
    .filter(it => it.status === 'active')
    .map(it => ({
      id: it.id,
      patients: referredBy(it, 'patient', context.baseUrl),
      members: referredBy(it, 'participant', context.baseUrl),
    }))
}

const OWN = new Set<Problem['problem']>(['upstream-unreachable', 'upstream-late', 'too-costly'])

/** What the gateway finds for itself. Why the upstream would not tell is not the caller's business. */
export async function findForPolicy(
  context: Context,
  call: Call,
  type: string,
  params: Params,
  most: number,
): Promise<readonly Resource[] | Problem> {
  const request = buildSearch(call, `/${type}`, [...params, ['_count', '500']], false, context.addresses)
  const resources: Resource[] = []
  const own = { ...call, access: fullAccess }
  const outcome = await visitPages(context, own, request, only(type), most, ({ matches }) => {
    for (const it of matches) resources.push(it.resource)
  })
  if (typeof outcome === 'number') return resources
  return OWN.has(outcome.problem)
    ? outcome
    : fail({ problem: 'upstream-broken', why: `it does not return the ${type}s that the policy needs` })
}

function only(type: string): PageCheck {
  return { isMatch: it => it.resourceType === type, isInclude: () => false, includes: () => [] }
}

function referredBy(resource: Resource, parameter: string, baseUrl: string): ReadonlySet<string> {
  return new Set(
    indexResource(resource, baseUrl).flatMap(entry =>
      entry.kind === 'reference' && entry.parameter === parameter && entry.type !== undefined
        ? [`${entry.type}/${entry.id}`]
        : [],
    ),
  )
}
