import { randomUUID } from 'node:crypto'
import { isFailure } from '../../core/index.ts'
import { type CurrentVersion, isExcess, type Resource } from '../../fhir/index.ts'
import { failHidden, mayRevealAbsence, type Permission } from '../../smart/index.ts'
import type { Awaitable, BackendSession } from '../backend.ts'
import type { Context } from '../context.ts'
import type { FhirRequest } from '../request.ts'
import type { Failure } from '../response.ts'
import type { StoredVersion } from '../stored-version.ts'
import { type AccessCheck, createAccessCheck } from './access-check.ts'

/** Absent, or outside the access. The caller must not always learn which. */
export type Unseen = 'absent' | 'outside'

/** A resource, or one version of it, and what the caller wants to do with it. */
interface Target {
  readonly permission: Permission
  readonly type: string
  readonly id: string
  readonly version?: string | undefined
  /** The response tells an absent resource from a refused one (docs/decisions/0021-refused-and-absent.md). */
  readonly tellsAbsence?: true
}

export interface ResourceLookup extends Pick<Context, 'baseUrl' | 'accessCache' | 'excludedTypes'> {
  readonly session: Pick<BackendSession, 'read' | 'readLast' | 'noteUnseen' | 'panelMembers'>
}

export function checkStored(
  context: Pick<ResourceLookup, 'baseUrl' | 'excludedTypes'> & {
    readonly session: Pick<BackendSession, 'panelMembers'>
  },
  request: Pick<FhirRequest, 'access'>,
  resources: readonly Resource[],
  standIn?: string,
): AccessCheck | Promise<AccessCheck | Failure> {
  return createAccessCheck({
    access: request.access,
    baseUrl: context.baseUrl,
    excludedTypes: context.excludedTypes,
    resources,
    standIn,
    panelMembers: (panels, patients) => context.session.panelMembers(panels, patients),
  })
}

/** Finds a resource, or one version of it, within the access; reveals nothing about others. */
export async function findResource(
  context: ResourceLookup,
  request: FhirRequest,
  target: Target,
): Promise<StoredVersion | Failure> {
  return toVisible(context, await lookUp(context, request, target), request, target)
}

/** The part of a lookup that the caller may know. A deleted resource is visible if its last content is within the access. */
export function toVisible(
  context: ResourceLookup,
  found: StoredVersion | Unseen | Failure,
  request: FhirRequest,
  target: Target,
): StoredVersion | Failure {
  return typeof found === 'string' ? failUnseen(context, request, target) : found
}

/** Fails in the same way for an absent and a refused resource. */
export function failUnseen(
  { session }: ResourceLookup,
  { access }: FhirRequest,
  { permission, type, id }: Target,
): ReturnType<typeof failHidden> {
  if (access.filterFor(type, permission) !== 'everything') session.noteUnseen?.(type)
  return failHidden(access, permission, type, id)
}

/**
 * Fails if the current version of a resource (the last one, if deleted) is outside the access, so that no version may be
 * shown. It is looked up first, so that the time does not reveal whether an older version is within.
 */
export async function findHidden(
  context: Context,
  request: FhirRequest,
  type: string,
  id: string,
): Promise<Failure | undefined> {
  if (context.versionAccess === 'version' || request.access.filterFor(type, 'r') === 'everything')
    return undefined
  const current = await findResource(context, request, { permission: 'r', type, id })
  return isFailure(current) ? current : undefined
}

/**
 * Looks up a resource and checks its content. Refused and absent resources take the same steps: whenever a limited caller
 * is shown nothing, the last content is looked up, or an unused id where there is none that matters.
 */
export async function lookUp(
  context: ResourceLookup,
  request: FhirRequest,
  target: Target,
): Promise<StoredVersion | Unseen | Failure> {
  const { session } = context
  const { permission, type, id, version, tellsAbsence } = target
  const filter = request.access.filterFor(type, permission)
  const concealed = tellsAbsence ? undefined : filter
  const reading = session.read(type, id, version, concealed)
  const stored = reading instanceof Promise ? await reading : reading
  if (isFailure(stored)) return explainFailure(context, request, target, stored)
  if (stored?.text !== undefined) {
    const checking = isWithin(context, request, permission, stored, stored.text)
    const within = checking instanceof Promise ? await checking : checking
    if (isFailure(within)) return explainFailure(context, request, target, within)
    if (within) return stored
  }
  if (filter === 'everything') return stored?.deleted ? stored : stored ? 'outside' : 'absent'
  if (!session.readLast) return stored ? 'outside' : 'absent'
  if (stored && !stored.deleted && stored.text === undefined) return 'outside'
  if (!stored || stored.deleted) await allowsContent(context, request, target, undefined)
  const last = await (stored?.deleted ? session.readLast(type, id, concealed) : readUnused(session, type))
  if (isFailure(last)) return last
  const wasWithin = await allowsContent(context, request, target, last)
  if (isFailure(wasWithin)) return wasWithin
  if (stored?.deleted && wasWithin) return stored
  return stored ? 'outside' : 'absent'
}

/** A read of an id that nobody has, in the place of one that does not matter. The content of a stored resource may be large. */
async function readUnused(session: ResourceLookup['session'], type: string): Promise<Failure | undefined> {
  const other = await session.read(type, randomUUID())
  return isFailure(other) && isExcess(other) ? other : undefined
}

/** Whether stored content is within the access. It is parsed only if the cache does not know it. */
export function isWithin(
  context: ResourceLookup,
  request: FhirRequest,
  permission: Permission,
  stored: StoredVersion,
  text: string,
): Awaitable<boolean | Failure> {
  const { type, id } = stored
  const { access } = request
  if (stored.isTrusted && access.filterFor(type, permission) === 'everything') return true
  const place = `${permission}${type}/${id}`
  const known = context.accessCache.find(access, place, text)
  if (known) {
    stored.recall?.(known)
    return true
  }
  const resource = stored.parse()
  if (isFailure(resource)) return resource
  const check = checkStored(context, request, [resource], id)
  const decide = (it: AccessCheck | Failure) => {
    if (isFailure(it)) return it
    const within = it.allows(permission, resource)
    if (within && it.isCacheable) context.accessCache.add(access, place, text, stored.stated ?? {})
    return within
  }
  return check instanceof Promise ? check.then(decide) : decide(check)
}

/**
 * Explains a backend response that cannot be checked (not JSON, too long, a redirect, its own 403 or 429). It would reveal
 * to a limited caller that the id exists, so that it is shown only if the backend responds in the same way for an unused
 * id, or if the grant itself names the id.
 */
export async function explainFailure(
  context: ResourceLookup,
  request: FhirRequest,
  target: Target,
  failure: Failure,
): Promise<Unseen | Failure> {
  const { permission, type, id } = target
  if (
    !OF_ONE_RESPONSE.has(failure.reason) ||
    mayRevealAbsence(request.access.filterFor(type, permission), type, id)
  )
    return failure
  await allowsContent(context, request, target, undefined)
  const other = await context.session.read(type, randomUUID())
  const isOfServer = other !== undefined && (isFailure(other) || !other.deleted)
  const allowed = await allowsContent(context, request, target, undefined)
  return isOfServer ? failure : isFailure(allowed) ? allowed : 'outside'
}

// 503, 504 and a time-out are about the upstream as a whole, as its circuit breaker takes them.
const OF_ONE_RESPONSE: ReadonlySet<Failure['reason']> = new Set([
  'upstream-broken',
  'upstream-broken-in-change',
  'upstream-declined',
])

/** Whether content is within the access. Absent content is not, but is checked as well, so that it takes the same time. */
async function allowsContent(
  context: ResourceLookup,
  request: FhirRequest,
  { permission, type, id }: Target,
  content: Resource | undefined,
): Promise<boolean | Failure> {
  const check = await checkStored(context, request, [content ?? { resourceType: type }], id)
  if (isFailure(check)) return check
  return content !== undefined && check.allows(permission, content)
}

/** A stored version as preconditions compare it. */
export function toCurrentVersion({ etag, lastModified }: StoredVersion): CurrentVersion {
  return { etag, modified: lastModified }
}
