import { type ExactResource, plainOf, type Resource } from '../../fhir/index.ts'
import type { AccessCache } from '../../fhir-api/index.ts'
import {
  type Access,
  type AccessFilter,
  failHidden,
  isWritable,
  type PanelMembership,
  type Permission,
  satisfies,
} from '../../smart/index.ts'
import type { Call, Context } from './call.ts'
import type { Problem } from './problem.ts'
import { resourceOf, type Stored } from './repository/stored.ts'

/** By what data are judged, and how references in them are read. */
interface Judge {
  readonly access: Access
  readonly baseUrl: string
  readonly membership: PanelMembership
  readonly accessCache: AccessCache
}

export function judgeOf({ baseUrl, membership, accessCache }: Context, { access }: Call): Judge {
  return { access, baseUrl, membership, accessCache }
}

/** Whether new content may be written. */
export function accepts(judge: Judge, permission: 'c' | 'u', resource: ExactResource): boolean {
  const filter = judge.access.filterFor(resource.resourceType, permission)
  return filter === 'everything' || isWritable(plainOf(resource), filter, judge.baseUrl, judge.membership)
}

/** Whether content may be touched with a permission. */
export function reaches(judge: Judge, permission: Permission, resource: Resource): boolean {
  const filter = judge.access.filterFor(resource.resourceType, permission)
  return satisfies(resource, filter, judge.baseUrl, judge.membership)
}

/** The same of what is stored, which is parsed only where its content decides. */
export function reachesStored(judge: Judge, permission: Permission, stored: Stored): boolean {
  const filter = judge.access.filterFor(stored.type, permission)
  if (filter === 'everything') return true
  const { access, accessCache, baseUrl, membership } = judge
  if (hasPanel(filter)) return satisfies(resourceOf(stored), filter, baseUrl, membership)
  const place = `${permission}${stored.type}/${stored.id}`
  if (accessCache.has(access, place, stored.content)) return true
  const within = satisfies(resourceOf(stored), filter, baseUrl)
  if (within) accessCache.add(access, place, stored.content)
  return within
}

/** Who is on a panel changes with the data, so that nothing found by it holds for the next time. */
function hasPanel(filter: AccessFilter): boolean {
  return filter !== 'everything' && filter.some(limit => limit.panel)
}

/**
 * What may be touched, or why not. Refused and absent are one answer where the caller may not be told the difference.
 */
export function found(
  judge: Judge,
  permission: Permission,
  type: string,
  id: string,
  stored: Stored | undefined,
): Stored | Problem {
  if (stored && reachesStored(judge, permission, stored)) return stored
  return failHidden(judge.access, permission, type, id)
}
