import {
  containedPatients,
  isProblem,
  namesOtherPatient,
  patientsOf,
  type Resource,
  referredPatients,
  UNKNOWN_PATIENT,
} from '../../../fhir/index.ts'
import {
  type Access,
  grantsBinary,
  isWritable,
  type Panel,
  type PanelMembership,
  type Permission,
  satisfies,
} from '../../../smart/index.ts'
import type { Call, Context } from '../call.ts'
import type { Problem } from '../problem.ts'
import { KEPT_ELSEWHERE } from './kept-elsewhere.ts'

/** Judges the content that it was made for; of other content it may know too little, and then it reaches less. */
export interface Judge {
  /** Whether content from the upstream may be shown, or changed. */
  reaches(permission: Permission, resource: Resource): boolean
  /** Whether new content may be sent to it. */
  accepts(permission: Permission, resource: Resource): boolean
  /** Whether a DocumentReference lets the caller read a Binary. */
  conveys(document: Resource, binaryId: string): boolean
  /** Whether it would say the same tomorrow: it did not have to ask who is on a panel. */
  readonly lasts: boolean
}

/**
 * The judge of these resources. Whom a policy's panels hold only the upstream can tell: where that matters it is asked
 * first, about all patients of the resources together; where they name nobody about `standIn`, so that it takes as long.
 */
export function judgeOf(
  context: Context,
  call: Call,
  resources: readonly Resource[],
  standIn?: string,
  patientsIn = patientsNamed,
): Judge | Promise<Judge | Problem> {
  const panels = panelsAmong(call.access, resources)
  if (panels.size === 0) return judgeBy(call.access, context.baseUrl)
  const patients = new Set(resources.flatMap(it => [...patientsIn(it, context.baseUrl)]))
  if (patients.size === 0 && standIn !== undefined) patients.add(standIn)
  return askedJudge(context, call, [...panels], patients)
}

async function askedJudge(
  context: Context,
  call: Call,
  panels: readonly Panel[],
  patients: ReadonlySet<string>,
): Promise<Judge | Problem> {
  const membership = await context.rosterOf(context, call, panels, patients)
  return isProblem(membership) ? membership : judgeBy(call.access, context.baseUrl, membership)
}

function judgeBy(access: Access, baseUrl: string, membership?: PanelMembership): Judge {
  return {
    lasts: membership === undefined,
    reaches: (permission, resource) =>
      !KEPT_ELSEWHERE.has(resource.resourceType) &&
      satisfies(resource, access.filterFor(resource.resourceType, permission), baseUrl, membership),
    conveys: (document, binaryId) => grantsBinary(document, binaryId, access, baseUrl, membership),
    accepts: (permission, resource) =>
      !KEPT_ELSEWHERE.has(resource.resourceType) &&
      isWritable(resource, access.filterFor(resource.resourceType, permission), baseUrl, membership),
  }
}

const PERMISSIONS = ['c', 'r', 'u', 'd', 's'] as const satisfies readonly Permission[]

/** The panels that may decide about the resources. */
function panelsAmong(access: Access, resources: readonly Resource[]): ReadonlySet<Panel> {
  const panels = new Set<Panel>()
  for (const { resourceType } of resources)
    for (const panel of panelsOf(access, resourceType)) panels.add(panel)
  return panels
}

const known = new WeakMap<Access, Map<string, readonly Panel[]>>()

/** Those of a type; mostly there are none, and it is asked for every resource. */
function panelsOf(access: Access, type: string): readonly Panel[] {
  const types = known.get(access) ?? new Map<string, readonly Panel[]>()
  known.set(access, types)
  let panels = types.get(type)
  if (!panels) {
    panels = PERMISSIONS.flatMap(permission => {
      const filter = access.filterFor(type, permission)
      return filter === 'everything' ? [] : filter.flatMap(({ panel }) => panel ?? [])
    })
    types.set(type, panels)
  }
  return panels
}

/** All patients that a check of new content may involve. */
export function patientsWritten(resource: Resource, baseUrl: string): ReadonlySet<string> {
  const named = new Set([...patientsNamed(resource, baseUrl), ...referredPatients(resource, baseUrl)])
  named.delete(UNKNOWN_PATIENT)
  return named
}

/** All patients that a check of the resource may involve. */
function patientsNamed(resource: Resource, baseUrl: string): ReadonlySet<string> {
  const named = new Set([...patientsOf(resource, baseUrl), ...containedPatients(resource, baseUrl)])
  namesOtherPatient(resource, id => named.add(id).has(id), baseUrl)
  named.delete(UNKNOWN_PATIENT)
  return named
}
