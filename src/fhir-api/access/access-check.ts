import { isFailure, remember } from '../../core/index.ts'
import {
  findContentPatients,
  findReferredPatients,
  type Resource,
  UNKNOWN_PATIENT,
} from '../../fhir/index.ts'
import {
  type Access,
  grantsBinary,
  isWritable,
  type Panel,
  type PanelMembership,
  type Permission,
  satisfies,
} from '../../smart/index.ts'
import type { Awaitable } from '../backend.ts'
import type { Failure } from '../response.ts'

/** Checks the content that it was created for. For other content it may lack panel membership, and then allows less. */
export interface AccessCheck {
  /** Whether stored content may be read, found, changed or deleted. */
  allows(permission: Permission, resource: Resource): boolean
  /** Whether new content may be written. */
  allowsWrite(permission: Permission, resource: Resource): boolean
  /** Whether a DocumentReference lets the caller read a Binary that does not say whose it is. */
  grantsBinary(document: Resource, binaryId: string): boolean
  /** Whether a patient of the content is on a panel. */
  isMember(panel: Panel, patient: string): boolean
  /** Whether the result depends on access and content alone, and not on the present panel membership. */
  readonly isCacheable: boolean
}

interface CheckedContent {
  readonly access: Access
  readonly baseUrl: string
  /** Types that the backend never serves. */
  readonly excludedTypes?: ReadonlySet<string> | undefined
  readonly resources: readonly Resource[]
  /** The id to look up if the resources name no patient, so that the time reveals nothing. */
  readonly standIn?: string | undefined
  /** The patients that a check of a resource may involve; by default those of stored content. */
  readonly findPatients?: (resource: Resource, baseUrl: string) => ReadonlySet<string>
  readonly panelMembers: (
    panels: readonly Panel[],
    patients: ReadonlySet<string>,
  ) => Awaitable<PanelMembership | Failure>
}

/**
 * Creates the check of some content. If panels of a policy decide, the backend is asked once about all patients of the
 * resources.
 */
export function createAccessCheck(content: CheckedContent): AccessCheck | Promise<AccessCheck | Failure> {
  const { access, resources, baseUrl, standIn, findPatients = findContentPatients } = content
  const panels = findPanels(access, resources)
  if (panels.size === 0) return createCheckWith(content, undefined)
  const patients = new Set<string>()
  for (const resource of resources) for (const id of findPatients(resource, baseUrl)) patients.add(id)
  patients.delete(UNKNOWN_PATIENT)
  if (patients.size === 0 && standIn !== undefined) patients.add(standIn)
  return createPanelCheck(content, [...panels], patients)
}

async function createPanelCheck(
  content: CheckedContent,
  panels: readonly Panel[],
  patients: ReadonlySet<string>,
): Promise<AccessCheck | Failure> {
  const membership = await content.panelMembers(panels, patients)
  return isFailure(membership) ? membership : createCheckWith(content, membership)
}

function createCheckWith(
  { access, baseUrl, excludedTypes }: CheckedContent,
  membership: PanelMembership | undefined,
): AccessCheck {
  const check = (isAllowed: typeof satisfies) => (permission: Permission, resource: Resource) =>
    !excludedTypes?.has(resource.resourceType) &&
    isAllowed(resource, access.filterFor(resource.resourceType, permission), baseUrl, membership)
  return {
    isCacheable: membership === undefined,
    allows: check(satisfies),
    allowsWrite: check(isWritable),
    grantsBinary: (document, binaryId) => grantsBinary(document, binaryId, access, baseUrl, membership),
    isMember: (panel, patient) =>
      panel.patients.has(patient) || (membership?.includes(panel, patient) ?? false),
  }
}

const PERMISSIONS = ['c', 'r', 'u', 'd', 's'] as const satisfies readonly Permission[]

/** The panels that may decide about the resources. */
function findPanels(access: Access, resources: readonly Resource[]): ReadonlySet<Panel> {
  const panels = new Set<Panel>()
  for (const type of new Set(resources.map(it => it.resourceType)))
    for (const panel of findPanelsOfType(access, type)) panels.add(panel)
  return panels
}

const panelsByAccess = new WeakMap<Access, Map<string, readonly Panel[]>>()

/** Cached by access and type, because every resource is checked and most accesses have no panels. */
function findPanelsOfType(access: Access, type: string): readonly Panel[] {
  const types = remember(panelsByAccess, access, () => new Map<string, readonly Panel[]>())
  return remember(types, type, () =>
    PERMISSIONS.flatMap(permission => {
      const filter = access.filterFor(type, permission)
      return filter === 'everything' ? [] : filter.flatMap(({ panel }) => panel ?? [])
    }),
  )
}

/** All patients that a check of new content may involve. */
export function findWrittenPatients(resource: Resource, baseUrl: string): ReadonlySet<string> {
  return new Set([...findContentPatients(resource, baseUrl), ...findReferredPatients(resource, baseUrl)])
}
