import { fail, isFailure, isRecord, toRecord } from '../../../core/index.ts'
import {
  failFor,
  formatExact,
  isResource,
  matches,
  type Params,
  parseExact,
  toPlain,
} from '../../../fhir/index.ts'
import {
  type CommitOptions,
  type CommitResult,
  type Committed,
  type Failure,
  type FhirRequest,
  failBroken,
  type StoredVersion,
  seesAll,
  type VersionedWrite,
} from '../../../fhir-api/index.ts'
import type { GatewayContext } from '../context.ts'
import { buildHeaders, buildQuery, buildWrite } from '../http/build-request.ts'
import { mayRepeat, type UpstreamRequest } from '../http/exchange.ts'
import type { UpstreamResponse } from '../http/read-response.ts'
import { addDoubt, locateFailure, parseResource, toFailure } from '../http/response.ts'
import { pickHeaders } from '../pass/pass-through.ts'
import { readVersion, UpstreamVersion } from '../read/read-version.ts'
import { type Binding, bindDelete, bindUpdate, type Delete, hasOverwritten } from './binding.ts'
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
  const outgoing = toUpstreamRequest(context, request, bound)
  const answer = await context.upstream.ask(outgoing)
  if (isFailure(answer)) return { kind: 'failed', failure: request.content?.failure ?? answer, write: 0 }
  if (answer.status >= 300) {
    const failure = addDoubt(toFailure(answer, request), outgoing, answer)
    return mayRepeat(outgoing, answer)
      ? describeRefusal(context, request, write, answer, failure)
      : { kind: 'failed', failure, write: 0 }
  }
  const stored = findStored(write, answer)
  if (stored && isFailure(stored))
    return { kind: 'failed', failure: addDoubt(stored, outgoing, answer), write: 0 }
  // A match that the plan did not find is checked by a new plan, before the response names it.
  if (hasMatched(bound, answer.status)) return { kind: 'matched', failure: MATCHED }
  const committed = describeCommitted(context, write, answer, false, stored)
  const failure = await findLoss(context, request, write, committed, false)
  if (!failure) return { kind: 'committed', committed: [committed] }
  return { kind: 'failed', failure: failure.reason === 'undeleted' ? CHANGED : failure, write: 0 }
}

/** Whether a create found a match of its condition. Without a condition, some servers and proxies answer a create with 200. */
function hasMatched({ request }: BoundWrite, status: number): boolean {
  return request.ifNoneExist !== undefined && status !== 201
}

/** The result of a write that was not carried out. */
async function describeRefusal(
  context: GatewayContext,
  request: FhirRequest,
  write: VersionedWrite,
  answer: UpstreamResponse,
  failure: Failure,
): Promise<CommitResult> {
  if (write.kind === 'create' || !isConflict(answer)) return { kind: 'failed', failure, write: 0 }
  if (write.kind === 'update' || !(await isCurrent(context, request, write)))
    return { kind: 'conflict', failure }
  const { type, id } = write
  return {
    kind: 'failed',
    write: 0,
    failure: seesAll(request.access) ? failure : failFor('referred', { type, id }),
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

const MATCHED = failFor('match-written')

const CHANGED = failFor('changed-while-deleted')

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
  return fail({ ...failFor('overwritten', { type, id }), affected: [written, ...replaced] })
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
  answer: Pick<UpstreamResponse, 'status' | 'headers'>,
  isMatch: boolean,
  stored: StoredVersion | undefined,
): Committed {
  if (write.kind === 'delete') return { status: 204 }
  const { location, 'content-location': contentLocation } = pickHeaders(answer.headers, urls)
  const isCreated = write.kind === 'create' ? !isMatch : answer.status === 201
  return {
    status: isCreated ? 201 : 200,
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

/** The new version, where the upstream server returns it. A response with anything else need not be about the write. */
function findStored(write: VersionedWrite, answer: UpstreamResponse): StoredVersion | Failure | undefined {
  if (answer.text === '') return undefined
  const resource = parseResource(answer)
  if (isFailure(resource)) return resource
  const { resourceType, id } = resource
  if (resourceType === 'OperationOutcome' && write.type !== resourceType) return undefined
  if (resourceType !== write.type || (write.id !== undefined && id !== undefined && id !== write.id))
    return OTHER_RESOURCE
  return id === undefined ? undefined : new UpstreamVersion(write.type, id, answer)
}

const OTHER_RESOURCE = failBroken('it answered a write with a different resource')

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
  const outgoing = buildWrite(request, 'POST', '', body, context.urls)
  const answer = await context.upstream.ask(outgoing)
  if (isFailure(answer)) return { kind: 'failed', failure: answer }
  if (answer.status >= 300) {
    const failure = addDoubt(toFailure(answer, request), outgoing, answer)
    return { kind: isConflict(answer) ? 'conflict' : 'failed', ...locateFailure(failure, writes) }
  }
  const entries = readEntries(answer, writes.length)
  return isFailure(entries)
    ? { kind: 'failed', failure: addDoubt(entries, outgoing, answer) }
    : readResponses(context, request, writes, entry, entries)
}

/** The entries of the response, one for each write. */
function readEntries(answer: UpstreamResponse, count: number): readonly unknown[] | Failure {
  const response = parseResource(answer)
  if (isFailure(response)) return response
  const exact = parseExact(answer.text)
  const entries: unknown = isRecord(exact) ? exact.entry : undefined
  return response.resourceType === 'Bundle' && Array.isArray(entries) && entries.length === count
    ? entries
    : INCOMPLETE
}

async function readResponses(
  context: GatewayContext,
  request: FhirRequest,
  writes: readonly VersionedWrite[],
  sent: readonly BoundWrite[],
  entries: readonly unknown[],
): Promise<CommitResult> {
  const committed: Committed[] = []
  const failures: { readonly failure: Failure; readonly write: number }[] = []
  for (const [at, write] of writes.entries()) {
    const result = describeEntry(context, write, sent[at], entries[at])
    const failure = isFailure(result) ? result : await findLoss(context, request, write, result, true)
    if (failure) failures.push({ failure, write: at })
    committed.push(isFailure(result) || failure?.reason === 'undeleted' ? { status: 409 } : result)
    await request.work.pause()
  }
  const [first] = failures
  return first ? { kind: 'failed', ...first, committed } : { kind: 'committed', committed }
}

const INCOMPLETE = failBroken('it did not answer every entry of a transaction')

// Some servers write a version where FHIR has an entity tag.
const BARE_VERSION = /^[A-Za-z0-9.-]+$/

// The others are carried out, so that the transaction is neither done nor undone.
const PARTIAL = fail({
  ...failBroken('it did not carry out every entry of a transaction'),
  reason: 'upstream-broken-in-change',
})

/** The response to an entry as if it had been a request of its own. */
function describeEntry(
  context: GatewayContext,
  write: VersionedWrite,
  sent: BoundWrite | undefined,
  entry: unknown,
): Committed | Failure {
  const { resource, response } = toRecord(entry)
  const { status, location, etag, lastModified } = toRecord(response)
  const headers = {
    'content-type': 'application/fhir+json',
    ...(typeof location === 'string' && { location: context.urls.toUpstream(location) }),
    ...(typeof etag === 'string' && { etag: etag.replace(BARE_VERSION, 'W/"$&"') }),
    ...(typeof lastModified === 'string' && { 'last-modified': lastModified }),
  }
  const code = typeof status === 'string' ? Number.parseInt(status, 10) : 200
  if (code >= 300) return PARTIAL
  const answer = { status: code, headers, text: isResource(resource) ? formatExact(resource) : '' }
  const stored = findStored(write, answer)
  const isMatch = sent !== undefined && hasMatched(sent, code)
  return describeCommitted(context, write, answer, isMatch, stored && isFailure(stored) ? undefined : stored)
}
