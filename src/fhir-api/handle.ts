import {
  fail,
  findShape,
  isUnchanged,
  isWriting,
  type Params,
  parseEntries,
  readContent,
  shapeResponse,
} from '../fhir/index.ts'
import { findThroughDocument, isLimitedBinary } from './access/binaries.ts'
import { findExcludedType } from './access/excluded-types.ts'
import { findHidden, findResource, lookUp, toCurrentVersion, toVisible } from './access/find-resource.ts'
import { performBatch } from './bundle/batch.ts'
import { toEntryRequest } from './bundle/entry-request.ts'
import { performTransaction } from './bundle/transaction.ts'
import type { Context, Handler } from './context.ts'
import type { Failure } from './failure.ts'
import { isFailure } from './failure.ts'
import { history } from './interactions/history.ts'
import { operation } from './interactions/operation.ts'
import { search } from './interactions/search.ts'
import { write } from './interactions/write.ts'
import type { FhirRequest, InteractionOf, Kind } from './request.ts'
import type { FhirResponse } from './response.ts'
import type { StoredVersion } from './stored-version.ts'

/** Checked on the content: the URL does not tell whose it is. */
const read: Handler<'read'> = async (context, request) => {
  const { type, id, params } = request.interaction
  const passed = context.session.passThrough && (await context.session.passThrough(request))
  if (passed) return passed
  const found = await lookUp(context, request, 'r', type, id)
  const granted =
    typeof found === 'string' && isLimitedBinary(request)
      ? await findThroughDocument(context, request, id)
      : undefined
  return show(granted ?? toVisible(found, request, 'r', type, id), params, request)
}

/**
 * The resource may have been another patient's at that version, and may be another patient's now: both must be within
 * the access, unless the settings say that the version alone decides.
 */
const vread: Handler<'vread'> = async (context, request) => {
  const { type, id, version, params } = request.interaction
  const passed = context.session.passThrough && (await context.session.passThrough(request))
  if (passed) return passed
  const hidden = await findHidden(context, request, type, id)
  if (hidden) return hidden
  return show(await findResource(context, request, 'r', type, id, version), params, request)
}

function show(
  found: StoredVersion | Failure,
  params: Params,
  { preconditions, preferences }: FhirRequest,
): FhirResponse | Failure {
  if (isFailure(found)) return found
  const { type, id, text } = found
  if (found.deleted || text === undefined) return fail({ problem: 'gone', type, id })
  const version = { etag: found.etag, lastModified: found.lastModified }
  if (isUnchanged(toCurrentVersion(found), preconditions)) return { status: 304, version }
  if (preferences.content) return { status: 200, version, body: text, content: readContent(text) }
  return { status: 200, version, body: params.length === 0 ? text : shapeResponse(text, findShape(params)) }
}

/** `metadata`: what the server can do. Public. */
const capabilities: Handler<'capabilities'> = async context => {
  const statement = await context.capabilities()
  return isFailure(statement) ? statement : { status: 200, body: statement }
}

/** `.well-known/smart-configuration`: where tokens come from. Public, and plain JSON. */
const smartConfiguration: Handler<'smart-configuration'> = async context => ({
  status: 200,
  headers: { 'content-type': 'application/json; charset=utf-8' },
  body: JSON.stringify(context.smartConfiguration()),
})

/** `POST [base]`: a batch or a transaction. */
const bundle: Handler<'bundle'> = async (context, request) => {
  const parsed = parseEntries(request.body, context.baseUrl)
  if (isFailure(parsed)) return parsed
  const { type, entries } = parsed
  const passed = await context.session.passThrough?.(request)
  if (passed) return passed
  if (type === 'batch') return announced(context, it => performBatch(it, request, entries))
  const requests = entries.map(entry => toEntryRequest(request, entry))
  const perform = (it: Context) => performTransaction(it, request, entries, requests)
  // The outcome of a transaction that only writes is known when it is committed.
  const isKnown = requests.every(it => isFailure(it) || isWriting(it.interaction))
  return isKnown ? perform(context) : announced(context, perform)
}

/**
 * Stores the audit records of a Bundle whose outcome is not known when its changes are committed: one that announces it
 * before the first change, and in its place those of the outcome.
 */
async function announced(
  context: Context,
  perform: (context: Context) => Promise<FhirResponse | Failure>,
): Promise<FhirResponse | Failure> {
  const { audited, session } = context
  const announcement = audited && (await session.local?.announce?.(audited.begun()))
  if (!announcement) return perform(context)
  try {
    const outcome = await perform({ ...context, audited: undefined })
    if (!isFailure(outcome)) await outcome.durable
    await announcement.complete(isFailure(outcome) ? [] : audited.recordsOf(outcome))
    return isFailure(outcome) ? outcome : { ...outcome, isRecorded: true }
  } catch (error) {
    // Nothing was changed. The failure is recorded like that of any request.
    await announcement.complete([])
    throw error
  }
}

/** FHIR's interactions and their handlers. */
const HANDLERS: {
  readonly [K in Kind]: (
    context: Context,
    request: FhirRequest<InteractionOf<K>>,
  ) => Promise<FhirResponse | Failure>
} = {
  capabilities,
  'smart-configuration': smartConfiguration,
  read,
  vread,
  'history-instance': history,
  'history-type': history,
  'history-system': history,
  'search-type': search,
  'search-system': search,
  'search-compartment': search,
  operation,
  create: write,
  update: write,
  'update-conditional': write,
  patch: write,
  'patch-conditional': write,
  delete: write,
  'delete-conditional': write,
  bundle,
}

/** Performs an interaction that has been allowed, within the access that it was allowed with. */
export async function handle<K extends Kind>(
  context: Context,
  request: FhirRequest<InteractionOf<K>>,
): Promise<FhirResponse | Failure> {
  const { excludedTypes } = context
  const excluded = excludedTypes && findExcludedType(request.interaction, excludedTypes)
  if (excluded !== undefined) return fail({ problem: 'kept-elsewhere', type: excluded })
  return HANDLERS[request.interaction.kind as K](context, request)
}
