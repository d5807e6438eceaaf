import { fail, isFailure, isRecord } from '../../core/index.ts'
import { formatExact, isResource, matches, type Params, parseExact, toPlain } from '../../fhir/index.ts'
import {
  type CommitOptions,
  type CommitResult,
  type Committed,
  createTurns,
  type Failure,
  type FhirRequest,
  type StoredVersion,
  seesAll,
  type VersionedWrite,
} from '../../fhir-api/index.ts'
import { type Binding, bindDelete, bindUpdate, type Delete, hasOverwritten } from './binding.ts'
import type { GatewayContext } from './context.ts'
import { buildHeaders, buildQuery, buildWrite } from './http/build-request.ts'
import type { UpstreamRequest } from './http/exchange.ts'
import type { UpstreamResponse } from './http/read-response.ts'
import { locateFailure, parseResource, toFailure } from './http/response.ts'
import { pickHeaders } from './pass-through.ts'
import { readVersion, UpstreamVersion } from './read-version.ts'
import { findReplaced, verifyDelete } from './verify-delete.ts'

/**
 * Sends changes to the upstream server: one by itself, those of a transaction together. Each is bound to the version that it
 * was planned from, so that the server refuses it when somebody else was faster.
 */
export async function commit(
  context: GatewayContext,
  request: FhirRequest,
  writes: readonly VersionedWrite[],
  { isTransaction }: CommitOptions = {},
): Promise<CommitResult> {
  // A create by PUT would be refused only because the gateway has just started.
  if (context.profile().createOnlyPut === 'none') await context.recognize()
  const [first, ...others] = writes
  // A DELETE alone can be bound to its version, also where one in a transaction cannot.
  const isAlone = !isTransaction || (first?.kind === 'delete' && others.length === 0)
  return first && isAlone ? commitOne(context, request, first) : commitTransaction(context, request, writes)
}

async function commitOne(
  context: GatewayContext,
  request: FhirRequest,
  write: VersionedWrite,
): Promise<CommitResult> {
  const bound = bindWrite(context, request, write, false)
  if (isFailure(bound)) return { kind: 'failed', failure: bound, write: 0 }
  const answer = await context.upstream.ask(toUpstreamRequest(context, request, bound))
  if (isFailure(answer)) return { kind: 'failed', failure: request.content?.failure ?? answer, write: 0 }
  if (answer.status >= 300) return describeRefusal(context, request, write, answer)
  // A match that the plan did not find is checked by a new plan, before the response names it.
  if (write.kind === 'create' && answer.status === 200 && (write.mustBeNew || !seesAll(request.access)))
    return { kind: 'conflict', failure: MATCHED }
  const committed = describeCommitted(context, write, answer)
  const failure = await findLoss(context, request, write, committed, false)
  if (!failure) return { kind: 'committed', committed: [committed] }
  return failure.problem === 'undeleted'
    ? { kind: 'conflict', failure: CHANGED }
    : { kind: 'failed', failure, write: 0 }
}

async function describeRefusal(
  context: GatewayContext,
  request: FhirRequest,
  write: VersionedWrite,
  answer: UpstreamResponse,
): Promise<CommitResult> {
  const failure = toFailure(answer, request)
  if (write.kind === 'create' || !isConflict(answer)) return { kind: 'failed', failure, write: 0 }
  if (write.kind === 'update' || !(await isCurrent(context, request, write)))
    return { kind: 'conflict', failure }
  const { type, id } = write
  return {
    kind: 'failed',
    write: 0,
    failure: seesAll(request.access) ? failure : fail({ problem: 'referred', type, id }),
  }
}

/** Whether the checked version is still the current one. Then a conflict is about references to the resource. */
async function isCurrent(
  context: GatewayContext,
  request: FhirRequest,
  { type, id, before }: Delete,
): Promise<boolean> {
  if (context.profile().boundDelete === 'if-match') return false
  const current = await readVersion(context, request, type, id)
  return current !== undefined && !isFailure(current) && current.etag === before.etag
}

const MATCHED = fail({
  problem: 'stale',
  text: 'Cannot write: a matching resource was created at the same time. Send the request again',
})

const CHANGED = fail({
  problem: 'stale',
  text: 'Cannot delete: the resource was changed at the same time. Send the request again',
})

function isConflict({ status }: UpstreamResponse): boolean {
  return status === 409 || status === 412
}

/** Whether a change that the upstream has made affects a version that was not checked. */
async function findLoss(
  context: GatewayContext,
  request: FhirRequest,
  write: VersionedWrite,
  { status, version, stored }: Committed,
  isTransaction: boolean,
): Promise<Failure | undefined> {
  if (write.kind === 'delete') return verifyDelete(context, request, write, isTransaction)
  if (write.kind !== 'update' || !hasOverwritten(write, status, version?.etag)) return undefined
  const { type, id, resource } = write
  const written = stored ?? { type, id, text: undefined, parse: () => ({ ...toPlain(resource), id }) }
  const replaced = await findReplaced(context, request, type, id, version?.etag)
  return fail({ problem: 'overwritten', type, id, affected: [written, ...replaced] })
}

/** A write as an entry of a transaction, with its preconditions. */
interface BoundWrite {
  readonly fullUrl?: string
  readonly resource?: unknown
  readonly request: Binding & {
    readonly method: 'POST' | 'PUT' | 'DELETE'
    readonly url: string
    readonly ifNoneExist?: string
  }
}

function bindWrite(
  { urls, baseUrl, profile }: GatewayContext,
  { access }: FhirRequest,
  write: VersionedWrite,
  isTransaction: boolean,
): BoundWrite | Failure {
  switch (write.kind) {
    case 'create': {
      const { type, resource, fullUrl, mustBeNew } = write
      const ifNoneExist = findSatisfiedCondition(write, baseUrl)
      // In a transaction, a match would leave this entry out, and the others could not be undone.
      const isSent = ifNoneExist && !(isTransaction && mustBeNew)
      return {
        ...(fullUrl !== undefined && { fullUrl }),
        resource,
        request: {
          method: 'POST',
          url: type,
          ...(isSent && { ifNoneExist: buildQuery(ifNoneExist, urls, type) }),
        },
      }
    }
    case 'update': {
      const { type, id, resource } = write
      const binding = bindUpdate(write, profile(), access)
      return isFailure(binding)
        ? binding
        : { resource, request: { method: 'PUT', url: `${type}/${id}`, ...binding } }
    }
    case 'delete': {
      const binding = bindDelete(write, profile(), isTransaction)
      return isFailure(binding) ? binding : { request: { method: 'DELETE', ...binding } }
    }
  }
}

function toUpstreamRequest(
  { urls }: GatewayContext,
  request: FhirRequest,
  { resource, request: { method, url, ifMatch, ifNoneMatch, ifNoneExist } }: BoundWrite,
): UpstreamRequest {
  const headers = {
    ...(ifMatch !== undefined && { 'if-match': ifMatch }),
    ...(ifNoneMatch !== undefined && { 'if-none-match': ifNoneMatch }),
    ...(ifNoneExist !== undefined && { 'if-none-exist': ifNoneExist }),
  }
  return method === 'DELETE'
    ? { method, path: `/${url}`, headers: { ...buildHeaders(request), ...headers } }
    : buildWrite(request, method, `/${url}`, resource, urls, headers)
}

/**
 * The condition of a create, if the new resource satisfies it: some servers refuse others. Without that, a second create
 * would not find the first one anyway.
 */
function findSatisfiedCondition({ resource, ifNoneExist }: Create, baseUrl: string): Params | undefined {
  const plain = toPlain(resource)
  return ifNoneExist?.every(([name, value]) => matches(plain, name, value, baseUrl) !== false)
    ? ifNoneExist
    : undefined
}

type Create = Extract<VersionedWrite, { readonly kind: 'create' }>

function describeCommitted(
  { urls }: GatewayContext,
  write: VersionedWrite,
  answer: UpstreamResponse,
): Committed {
  if (write.kind === 'delete') return { status: 204 }
  const { location, 'content-location': contentLocation } = pickHeaders(answer.headers, urls)
  const stored = findStored(write, answer)
  return {
    status: answer.status === 201 ? 201 : 200,
    version: stored ?? describeVersion(answer.headers),
    location,
    ...(contentLocation !== undefined && { headers: { 'content-location': contentLocation } }),
    stored,
  }
}

function describeVersion({ etag, 'last-modified': lastModified = '' }: UpstreamResponse['headers']) {
  const time = Date.parse(lastModified)
  return { etag, lastModified: Number.isNaN(time) ? undefined : time }
}

/** The new version, where the upstream server returns it. */
function findStored(write: VersionedWrite, answer: UpstreamResponse): StoredVersion | undefined {
  const resource = answer.text === '' ? undefined : parseResource(answer)
  if (!resource || isFailure(resource) || resource.resourceType !== write.type) return undefined
  return resource.id === undefined ? undefined : new UpstreamVersion(write.type, resource.id, answer)
}

/** All or nothing: one request, in which the server resolves the `fullUrl`s of what it gives ids to. */
async function commitTransaction(
  context: GatewayContext,
  request: FhirRequest,
  writes: readonly VersionedWrite[],
): Promise<CommitResult> {
  const entry: BoundWrite[] = []
  for (const [at, write] of writes.entries()) {
    const sent = bindWrite(context, request, write, true)
    if (isFailure(sent)) return { kind: 'failed', failure: sent, write: at }
    entry.push(sent)
  }
  const body = { resourceType: 'Bundle', type: 'transaction', entry }
  const answer = await context.upstream.ask(buildWrite(request, 'POST', '', body, context.urls))
  if (isFailure(answer)) return { kind: 'failed', failure: answer }
  if (answer.status >= 300)
    return {
      kind: isConflict(answer) ? 'conflict' : 'failed',
      ...locateFailure(toFailure(answer, request), writes),
    }
  return readResponses(context, request, writes, answer)
}

async function readResponses(
  context: GatewayContext,
  request: FhirRequest,
  writes: readonly VersionedWrite[],
  answer: UpstreamResponse,
): Promise<CommitResult> {
  const response = parseResource(answer)
  if (isFailure(response)) return { kind: 'failed', failure: response }
  const exact = parseExact(answer.text)
  const entries: unknown = isRecord(exact) ? exact.entry : undefined
  if (!Array.isArray(response.entry) || !Array.isArray(entries) || entries.length !== writes.length)
    return { kind: 'failed', failure: INCOMPLETE }
  const committed: Committed[] = []
  const failures: { readonly failure: Failure; readonly write: number }[] = []
  const takeTurns = createTurns()
  for (const [at, write] of writes.entries()) {
    const result = describeEntry(context, write, entries[at])
    const failure = await findLoss(context, request, write, result, true)
    if (failure) failures.push({ failure, write: at })
    committed.push(failure?.problem === 'undeleted' ? { status: 409 } : result)
    await takeTurns()
  }
  const [first] = failures
  return first ? { kind: 'failed', ...first, committed } : { kind: 'committed', committed }
}

const INCOMPLETE = fail({
  problem: 'upstream-broken',
  why: 'it did not answer every entry of a transaction',
})

// Some servers write a version where FHIR has an entity tag.
const BARE_VERSION = /^[A-Za-z0-9.-]+$/

/** The response to an entry as if it had been a request of its own. */
function describeEntry(context: GatewayContext, write: VersionedWrite, entry: unknown): Committed {
  const { resource, response } = isRecord(entry) ? entry : {}
  const { status, location, etag, lastModified } = isRecord(response) ? response : {}
  const headers = {
    'content-type': 'application/fhir+json',
    ...(typeof location === 'string' && { location: context.urls.toUpstream(location) }),
    ...(typeof etag === 'string' && { etag: etag.replace(BARE_VERSION, 'W/"$&"') }),
    ...(typeof lastModified === 'string' && { 'last-modified': lastModified }),
  }
  const isCreated = typeof status === 'string' && status.startsWith('201')
  const text = isResource(resource) ? formatExact(resource) : ''
  return describeCommitted(context, write, { status: isCreated ? 201 : 200, headers, text })
}
