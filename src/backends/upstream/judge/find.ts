import { randomUUID } from 'node:crypto'
import { fail, isProblem, isRecord, isResource, type Resource } from '../../../fhir/index.ts'
import { failHidden, mayRevealAbsence, type Permission } from '../../../smart/index.ts'
import type { Call, Context } from '../call.ts'
import type { Problem } from '../problem.ts'
import { declined } from '../upstream/declined.ts'
import { getting } from '../upstream/request-of.ts'
import { isJson, resourceIn } from '../upstream/resource-in.ts'
import type { UpstreamAnswer } from '../upstream/upstream.ts'
import { checkContent } from './judge.ts'

/** A resource of the upstream that the caller may touch. */
export interface Living {
  readonly kind: 'living'
  readonly resource: Resource
  /** Its JSON as it came. */
  readonly text: string
  /** Its entity tag, by which a write is bound to what was judged. */
  readonly etag: string | undefined
  readonly lastModified: string | undefined
}

/** It was deleted, and the caller may know: its last version was within reach. */
export interface Deleted {
  readonly kind: 'deleted'
}

/** Nothing is there, or it is not within reach: the caller is not always to know which. */
export interface Unseen {
  readonly kind: 'absent' | 'outside'
}

/** Looks a resource up with a permission, for who may see it, and tells the caller nothing about the rest. */
export async function find(
  context: Context,
  call: Call,
  permission: Permission,
  type: string,
  id: string,
  version?: string,
): Promise<Living | Deleted | Problem> {
  return told(await look(context, call, permission, type, id, version), call, permission, type, id)
}

/**
 * Why no version of a resource is shown, if so: its current version is outside the reach (deleted: its last one). It is
 * looked up first, so that whether an older version was within takes no time.
 */
export async function hiddenNow(
  context: Context,
  call: Call,
  type: string,
  id: string,
): Promise<Problem | undefined> {
  if (context.versionAccess === 'version' || call.access.filterFor(type, 'r') === 'everything')
    return undefined
  const current = await find(context, call, 'r', type, id)
  return isProblem(current) ? current : undefined
}

/** What of a look the caller is told. */
export function told(
  seen: Living | Deleted | Unseen | Problem,
  call: Call,
  permission: Permission,
  type: string,
  id: string,
): Living | Deleted | Problem {
  if (isProblem(seen) || seen.kind === 'living' || seen.kind === 'deleted') return seen
  return failHidden(call.access, permission, type, id)
}

/**
 * Looks a resource up and judges what comes back. Refused and absent take one way: whenever nothing is shown to a
 * limited caller the versions are looked at, whether they can matter or not.
 */
export async function look(
  context: Context,
  call: Call,
  permission: Permission,
  type: string,
  id: string,
  version?: string,
): Promise<Living | Deleted | Unseen | Problem> {
  const path = `/${type}/${id}${version === undefined ? '' : `/_history/${version}`}`
  const answer = await context.upstream.ask(getting(call, path))
  if (isProblem(answer)) return unjudged(context, call, permission, type, id, answer)
  const { status } = answer
  if (status !== 200 && status !== 404 && status !== 410)
    return unjudged(context, call, permission, type, id, declined(answer, call.access))
  const seen = status === 200 ? judged(context, call, permission, answer, type, id) : undefined
  const living = seen instanceof Promise ? await seen : seen
  if (living && isProblem(living)) return unjudged(context, call, permission, type, id, living)
  if (living) return living
  if (call.access.filterFor(type, permission) === 'everything')
    return { kind: status === 410 ? 'deleted' : 'absent' }
  if (status !== 200) await within(context, call, permission, undefined, type, id)
  const last = await lastVersion(context, call, type, id)
  if (last && isProblem(last)) return last
  const wasWithin = await within(context, call, permission, last, type, id)
  if (typeof wasWithin === 'object') return wasWithin
  if (status === 410 && wasWithin) return { kind: 'deleted' }
  return { kind: status === 404 ? 'absent' : 'outside' }
}

/**
 * What it means that the upstream gives no answer that can be judged (it is no JSON, too long, a redirect, its own 403
 * or 429). To a limited caller it would tell that there is something under the id, so it is told only where the
 * upstream answers in that way for an id that nobody has, or where the grant itself names the id.
 */
export async function unjudged(
  context: Context,
  call: Call,
  permission: Permission,
  type: string,
  id: string,
  problem: Problem,
): Promise<Unseen | Problem> {
  if (
    !OF_ONE_RESPONSE.has(problem.problem) ||
    mayRevealAbsence(call.access.filterFor(type, permission), type, id)
  )
    return problem
  await within(context, call, permission, undefined, type, id)
  const other = await context.upstream.ask(getting(call, `/${type}/${randomUUID()}`))
  const isOfServer = isProblem(other) || (other.status !== 404 && other.status !== 410)
  const judge = await within(context, call, permission, undefined, type, id)
  return isOfServer ? problem : typeof judge === 'object' ? judge : { kind: 'outside' }
}

// 503, 504 and a time-out speak of the upstream as a whole, as its circuit breaker takes them.
const OF_ONE_RESPONSE: ReadonlySet<Problem['problem']> = new Set(['upstream-broken', 'upstream-declined'])

/** Whether content is within reach; nothing is not, but as much is asked about it, so that it takes as long. */
async function within(
  context: Context,
  call: Call,
  permission: Permission,
  content: Resource | undefined,
  type: string,
  id: string,
): Promise<boolean | Problem> {
  const judge = await checkContent(context, call, [content ?? { resourceType: type }], id)
  if (isProblem(judge)) return judge
  return content !== undefined && judge.allows(permission, content)
}

/**
 * The content that a resource had before it was deleted; undefined where the upstream does not tell, a problem where it
 * may not be asked any more.
 */
export async function lastVersion(
  { upstream }: Context,
  call: Call,
  type: string,
  id: string,
): Promise<Resource | Problem | undefined> {
  const answer = await upstream.ask(getting(call, `/${type}/${id}/_history?_count=2`))
  if (isProblem(answer)) return answer.problem === 'too-costly' ? answer : undefined
  if (answer.status !== 200) return undefined
  const bundle = resourceIn(answer)
  if (isProblem(bundle) || !Array.isArray(bundle.entry)) return undefined
  return bundle.entry
    .flatMap(entry => (isRecord(entry) && isResource(entry.resource) ? [entry.resource] : []))
    .find(it => it.resourceType === type && it.id === id)
}

/** The resource of an answer if it is within reach. */
function judged(
  context: Context,
  call: Call,
  permission: Permission,
  answer: UpstreamAnswer,
  type: string,
  id: string,
): Living | Problem | Promise<Living | Problem | undefined> {
  const { text, headers } = answer
  const place = `${permission}${type}/${id}`
  const isKnown = isJson(headers['content-type']) && context.accessCache.has(call.access, place, text)
  return isKnown ? new Seen(answer) : judgedAnew(context, call, permission, answer, type, id)
}

async function judgedAnew(
  context: Context,
  call: Call,
  permission: Permission,
  answer: UpstreamAnswer,
  type: string,
  id: string,
): Promise<Living | Problem | undefined> {
  const { text } = answer
  const resource = resourceIn(answer)
  if (isProblem(resource)) return resource
  if (resource.resourceType !== type || resource.id !== id)
    return fail({ problem: 'upstream-broken', why: 'it answered with a different resource' })
  const judge = await checkContent(context, call, [resource], id)
  if (isProblem(judge)) return judge
  if (!judge.allows(permission, resource)) return undefined
  if (judge.isCacheable) context.accessCache.add(call.access, `${permission}${type}/${id}`, text)
  return { kind: 'living', resource, text, ...versionOf(answer, resource.meta) }
}

/** What was judged before: it is read only if somebody looks into it. */
class Seen implements Living {
  readonly kind = 'living'
  readonly text: string
  readonly etag: string | undefined
  readonly lastModified: string | undefined

  constructor(answer: UpstreamAnswer) {
    this.text = answer.text
    const { etag, lastModified } = versionOf(answer, this.resource.meta)
    this.etag = etag
    this.lastModified = lastModified
  }

  get resource(): Resource {
    return JSON.parse(this.text) as Resource
  }
}

/** By its headers, else by what the resource says of itself. */
export function versionOf(
  { headers }: Pick<UpstreamAnswer, 'headers'>,
  version: { readonly versionId?: unknown; readonly lastUpdated?: unknown } = {},
): Pick<Living, 'etag' | 'lastModified'> {
  const { versionId, lastUpdated } = version
  return {
    etag: headers.etag ?? (typeof versionId === 'string' ? `W/"${versionId}"` : undefined),
    lastModified: headers['last-modified'] ?? timeOf(lastUpdated),
  }
}

function timeOf(instant: unknown): string | undefined {
  const time = typeof instant === 'string' ? new Date(instant) : undefined
  return time && !Number.isNaN(time.getTime()) ? time.toUTCString() : undefined
}
