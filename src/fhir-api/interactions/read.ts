import type { SentContent } from '../../audit/index.ts'
import { isFailure } from '../../core/index.ts'
import {
  failFor,
  findShape,
  isUnchanged,
  isWhole,
  type Params,
  parseHistory,
  readContent,
  shapeResponse,
  streamContent,
} from '../../fhir/index.ts'
import { failHidden } from '../../smart/index.ts'
import { findThroughDocument, isLimitedBinary } from '../access/binaries.ts'
import {
  explainFailure,
  findHidden,
  findResource,
  lookUp,
  toCurrentVersion,
  toVisible,
} from '../access/find-resource.ts'
import { bundleJson, entryJson } from '../bundle-json.ts'
import type { Context, Handler } from '../context.ts'
import { createLinks, type Pages, resumePage } from '../paging.ts'
import { type FhirRequest, getPath, type History } from '../request.ts'
import type { Failure, FhirResponse } from '../response.ts'
import type { HistoryEntry, HistoryPage, StoredVersion } from '../stored-version.ts'

export const read: Handler<'read'> = (context, request) =>
  request.interaction.type === 'Binary' && context.isRecorded
    ? readBinary(context, request)
    : findAndShow(context, request)

/** The audit trail files a Binary under its patient, or under those of the documents that name it. */
const readBinary: Handler<'read'> = async (context, request) => {
  const response = await findAndShow(context, request)
  if (isFailure(response) || showsPatient(response)) return response
  return { ...response, documents: await context.session.findDocuments(request.interaction.id) }
}

function showsPatient({ body, contents = [] }: FhirResponse): boolean {
  const texts = [body, ...contents.map(({ text }) => text)]
  return texts.some(text => typeof text === 'string' && text.includes('"securityContext"'))
}

/** Checks the content: the URL does not say whose resource it is. */
const findAndShow: Handler<'read'> = async (context, request) => {
  const { type, id, params } = request.interaction
  const passing = context.session.passThrough?.(request)
  const passed = passing && (await passing)
  if (passed) return passed
  const found = await lookUp(context, request, { permission: 'r', type, id })
  const granted =
    typeof found === 'string' && isLimitedBinary(request)
      ? await findThroughDocument(context, request, id)
      : undefined
  return show(granted ?? toVisible(context, found, request, { permission: 'r', type, id }), params, request)
}

/**
 * The version may be another patient's, and the current version too: both must be within the access, unless the settings
 * let the version alone decide.
 */
export const vread: Handler<'vread'> = async (context, request) => {
  const { type, id, version, params } = request.interaction
  const passing = context.session.passThrough?.(request)
  const passed = passing && (await passing)
  if (passed) return passed
  const hidden = await findHidden(context, request, type, id)
  if (hidden) return hidden
  return show(await findResource(context, request, { permission: 'r', type, id, version }), params, request)
}

async function show(
  found: StoredVersion | Failure,
  params: Params,
  request: FhirRequest,
): Promise<FhirResponse | Failure> {
  const { preconditions, preferences } = request
  if (isFailure(found)) return found
  const { type, id, text } = found
  if (found.deleted || text === undefined) return failFor('gone', { type, id })
  const version = { etag: found.etag, lastModified: found.lastModified }
  const contents = [found]
  if (isUnchanged(toCurrentVersion(found), preconditions)) return { status: 304, version, contents }
  const shape = findShape(params)
  if (found.stream && isWhole(shape)) {
    const body = request.isEntry ? tooLargeForBundle(found) : await found.stream()
    if (isFailure(body)) return body
    return preferences.content
      ? { status: 200, version, content: streamContent(text, body), contents }
      : { status: 200, version, body, contents }
  }
  if (preferences.content) return { status: 200, version, body: text, content: readContent(text), contents }
  return { status: 200, version, body: shapeResponse(text, shape), contents }
}

function tooLargeForBundle({ type, id }: StoredVersion): Failure {
  return failFor('read-too-large', { type, id })
}

/** The history of a resource, a type or the server: the versions that are within the access. */
export const history: Handler<History['kind']> = async (context, first) => {
  const { session } = context
  const path = getPath(first.interaction)
  const resumed = resumePage(context, first, path)
  if (isFailure(resumed)) return resumed
  const { request, cursor } = resumed
  const passed = session.passThrough && (await session.passThrough(request, cursor))
  if (passed) return passed
  const query = parseHistory(request.interaction.params, request.preferences.lenient)
  if (isFailure(query)) return query
  const hidden = context.versionAccess === 'current' ? await findHiddenResource(context, request) : undefined
  if (hidden) return hidden
  const page = await session.history(request, query, cursor)
  const unseen = await findUnseen(context, request, page)
  if (unseen) return unseen
  if (isFailure(page)) return explainHistoryFailure(context, request, page)
  return respondWithHistory(context, request, path, query.used, page)
}

/** Fails if the current version is outside the access. It is looked up first, so that the time reveals nothing. */
async function findHiddenResource(
  context: Context,
  request: FhirRequest<History>,
): Promise<Failure | undefined> {
  const { interaction } = request
  if (interaction.kind !== 'history-instance') return undefined
  const current = await findResource(context, request, {
    permission: 'r',
    type: interaction.type,
    id: interaction.id,
  })
  return isFailure(current) ? current : undefined
}

/** Fails if no version of a resource is visible: then not even the length of its history is revealed. */
async function findUnseen(
  context: Context,
  request: FhirRequest<History>,
  page: HistoryPage | Failure,
): Promise<Failure | undefined> {
  const { interaction, access } = request
  if (interaction.kind !== 'history-instance') return undefined
  if (!isFailure(page) && page.isNothing) return failHidden(access, 'r', interaction.type, interaction.id)
  const isKnown = isFailure(page) ? context.session.readLast !== undefined : page.isNothing !== undefined
  const mayBeUnseen = isFailure(page) || page.versions.length === 0
  return mayBeUnseen && !isKnown ? findHiddenResource(context, request) : undefined
}

async function explainHistoryFailure(
  context: Context,
  request: FhirRequest<History>,
  failure: Failure,
): Promise<Failure> {
  const { interaction, access } = request
  if (interaction.kind !== 'history-instance') return failure
  const { type, id } = interaction
  const explained = await explainFailure(context, request, { permission: 'r', type, id }, failure)
  return typeof explained === 'string' ? failHidden(access, 'r', type, id) : explained
}

export function respondWithHistory(
  context: { readonly baseUrl: string; readonly pages: Pages },
  request: FhirRequest<History>,
  path: string,
  used: History['params'],
  { versions, total, cursors }: HistoryPage,
): FhirResponse {
  const body = bundleJson({
    type: 'history',
    total,
    links: createLinks(context, request, path, used, cursors),
    entries: versions.map(it => formatVersion(context.baseUrl, it)),
  })
  return { status: 200, body, contents: versions.map(toSent) }
}

function toSent({ type, id, text, ...version }: HistoryEntry): SentContent {
  const parse = () => (text === undefined ? undefined : JSON.parse(text))
  return { type, id, text: text ?? '', parse, findPatients: () => version.findPatients() }
}

function formatVersion(baseUrl: string, version: HistoryEntry): string {
  const { type, id, text, method, status, etag, lastModified } = version
  return entryJson({
    fullUrl: `${baseUrl}/${type}/${id}`,
    resource: text,
    request: { method, url: method === 'POST' ? type : `${type}/${id}` },
    response: { status, etag, lastModified },
  })
}
