import { isFailure } from '../../../core/index.ts'
import { isExcess, type Params, type Resource } from '../../../fhir/index.ts'
import { type Failure, type FhirRequest, failBroken } from '../../../fhir-api/index.ts'
import { fullAccess, grantFingerprint, type Panel, type PanelMembership } from '../../../smart/index.ts'
import { chunk } from '../chunk.ts'
import type { GatewayContext } from '../context.ts'
import { failTooCostly } from '../http/response.ts'
import { buildSearch, NO_STORE, setCacheControl } from '../http/upstream-search.ts'
import { CARE_TEAMS, LIST_VALUES } from '../limits.ts'
import { createTeamTest, type FewTeams, type KnownTeams, type Team, Teams } from '../team.ts'
import { fetchPage, type PageCheck, visitPages } from './check-page.ts'
import { listTargetNames, listTargets } from './list-targets.ts'

/**
 * Finds which patients are on the panels, by the upstream's current data. Nothing is cached, so that a clinician who
 * leaves a care team loses access at once. The response is checked by its content.
 */
export async function findMembers(
  context: GatewayContext,
  request: FhirRequest,
  panels: readonly Panel[],
  patients: ReadonlySet<string>,
  known: readonly KnownTeams[] = [],
): Promise<PanelMembership | Failure> {
  const unlisted = [...patients].filter(id => !panels.every(panel => panel.patients.has(id)))
  const managers = new Map<string, readonly string[]>()
  const found = known.map(it => it.teams)
  const wanted = buildTeamParams(panels).filter(([, value]) => !known.some(it => it.member === value))
  for (const ids of chunk(unlisted, LIST_VALUES)) {
    const [managed, caring] = await Promise.all([
      panels.some(it => it.organizations.length > 0)
        ? findForPolicy(context, request, 'Patient', [['_id', ids.join()]], ids.length)
        : [],
      wanted.length > 0 ? findTeamsOf(context, request, ids, wanted) : [],
    ])
    if (isFailure(managed)) return managed
    if (isFailure(caring)) return caring
    for (const patient of managed)
      managers.set(String(patient.id), listTargets(patient, 'organization', 'Organization', context.baseUrl))
    found.push(new Teams(caring))
  }
  return {
    includes: (panel, patient) =>
      panel.organizations.some(id => managers.get(patient)?.includes(id)) ||
      found.some(teams => teams.of(patient).some(createTeamTest(panel))),
  }
}

/**
 * The care teams of patients that one of the parameters selects, or more. For several patients the parameters are left out
 * if their teams fit on one page: HAPI with H2 takes 10 s for a list of 20 patients and a member, 0.1 s for the list alone.
 */
async function findTeamsOf(
  context: GatewayContext,
  request: FhirRequest,
  ids: readonly string[],
  wanted: Params,
): Promise<readonly Team[] | Failure> {
  const ofPatients = ['patient', ids.map(it => `Patient/${it}`).join()] as const
  const few = ids.length > 1 ? await findFewTeams(context, request, [ofPatients]) : 'too-many'
  if (few !== 'too-many') return isFailure(few) ? few : few.all
  return findAllTeams(
    context,
    request,
    wanted.map(param => [ofPatients, param]),
    CARE_TEAMS,
  )
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

/** The care teams that any of the searches finds; a failure if one of them finds more than a number. */
export async function findAllTeams(
  context: GatewayContext,
  request: FhirRequest,
  searches: readonly Params[],
  max: number,
): Promise<readonly Team[] | Failure> {
  const teams: Team[] = []
  for (const params of searches) {
    const found = await findForPolicy(context, request, 'CareTeam', [...params, ACTIVE], max)
    if (isFailure(found)) return found
    for (const team of listTeams(found, context.baseUrl)) teams.push(team)
  }
  return teams
}

/** The care teams of a member, if they are few. Equal lookups of one caller at the same time are one request. */
export async function findTeamsOfMember(
  context: GatewayContext,
  request: FhirRequest,
  member: string,
): Promise<FewTeams> {
  const { memberLookups } = context
  const key = keyLookup(request, member)
  // Without a wait for nothing: requests that came together would all begin a lookup.
  const shared = memberLookups.has(key) ? await joinLookup(context, request, member) : undefined
  if (shared) return shared
  const lookup = findFewTeams(context, request, [['participant', member]])
  memberLookups.set(key, lookup)
  try {
    return await lookup
  } finally {
    if (memberLookups.get(key) === lookup) memberLookups.delete(key)
  }
}

/** The result of a lookup that is under way; undefined without one, and if it failed: its caller may have disconnected. */
export async function joinLookup(
  { memberLookups }: GatewayContext,
  request: FhirRequest,
  member: string,
): Promise<Exclude<FewTeams, Failure> | undefined> {
  const found = await memberLookups.get(keyLookup(request, member))?.catch(() => undefined)
  return found === undefined || isFailure(found) ? undefined : found
}

function keyLookup({ authenticated }: FhirRequest, member: string): string {
  return `${grantFingerprint(authenticated.grant)} ${member}`
}

/** Finds the active care teams of a search, if they fit on one page of the upstream. */
async function findFewTeams(
  context: GatewayContext,
  request: FhirRequest,
  params: Params,
): Promise<FewTeams> {
  const { own, outgoing, check } = planForPolicy(context, request, 'CareTeam', [...params, ACTIVE])
  const page = await fetchPage(context, own, outgoing, check)
  if (isFailure(page)) return hideReason(page, 'CareTeam')
  const resources = page.matches.map(it => it.resource)
  return page.continuation.kind === 'end' ? new Teams(listTeams(resources, context.baseUrl)) : 'too-many'
}

const ACTIVE = ['status', 'active'] as const

function listTeams(resources: readonly Resource[], baseUrl: string): readonly Team[] {
  return resources
    .filter(it => it.status === 'active')
    .map(it => ({
      id: it.id,
      patients: listTargets(it, 'patient', 'Patient', baseUrl),
      members: listTargetNames(it, 'participant', baseUrl),
    }))
}

/** Resources that the gateway itself needs. The upstream's reason for a failure is not passed to the caller. */
export async function findForPolicy(
  context: GatewayContext,
  request: FhirRequest,
  type: string,
  params: Params,
  max: number,
): Promise<readonly Resource[] | Failure> {
  const { own, outgoing, check } = planForPolicy(context, request, type, params)
  const resources: Resource[] = []
  const outcome = await visitPages(context, own, outgoing, check, max, ({ matches }) => {
    for (const { resource } of matches) resources.push(resource)
  })
  if (typeof outcome === 'number') return resources
  if (outcome === 'too-many') return failTooCostly(max)
  return hideReason(outcome, type)
}

function hideReason(failure: Failure, type: string): Failure {
  const isOwn =
    failure.reason === 'upstream-unreachable' || failure.reason === 'upstream-late' || isExcess(failure)
  return isOwn ? failure : failBroken(`it does not return the ${type}s that the policy needs`)
}

const PAGE_SIZE = 500

function planForPolicy(context: GatewayContext, request: FhirRequest, type: string, params: Params) {
  const sent: Params = [...params, ['_count', String(PAGE_SIZE)]]
  const check: PageCheck = {
    isMatch: it => it.resourceType === type,
    isInclude: () => false,
    includes: () => [],
  }
  return {
    own: { ...request, access: fullAccess },
    outgoing: setCacheControl(buildSearch(request, `/${type}`, sent, false, context.urls), NO_STORE),
    check,
  }
}
