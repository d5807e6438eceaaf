import { isFailure, isRecord } from '../../../core/index.ts'
import {
  failFor,
  findOperation,
  formatExact,
  isId,
  isResource,
  listCompartmentParameters,
  type Params,
  parseReference,
  type Resource,
  resourceTypes,
} from '../../../fhir/index.ts'
import {
  addPostedParams,
  bundleJson,
  entryJson,
  type Failure,
  type FhirRequest,
  type FhirResponse,
  failBroken,
  findResource,
  getPath,
  listReferences,
  listReferenceTexts,
  type Operation,
  respondWithPage,
  resumePage,
} from '../../../fhir-api/index.ts'
import { hasCompartment } from '../../../smart/index.ts'
import type { GatewayContext } from '../context.ts'
import { buildGet, buildHeaders, buildPath, dropFormat } from '../http/build-request.ts'
import type { UpstreamRequest } from '../http/exchange.ts'
import { parseBundle, parseEntry, parseResource, toFailure } from '../http/response.ts'
import { parseCursor } from '../paging.ts'
import { passThrough } from '../pass/pass-through.ts'
import { createContentCheck, createLookup, EXCLUDED_TYPES } from '../read/access.ts'
import { fetchRecord, VISIBLE } from '../search/find-everything.ts'
import { createPanelExpansion } from '../search/panels.ts'
import { openJob, sealJob } from './jobs.ts'

/** An operation that the site allows (`smart.fhir.upstream-operations`), for a caller who may see everything. */
async function passOperation(
  context: GatewayContext,
  received: FhirRequest<Operation>,
): Promise<FhirResponse | Failure> {
  const request = openJob(context, received)
  if (isFailure(request)) return request
  const excluded = findReadType(request)
  if (excluded !== undefined) return failFor('excluded-type', { type: excluded })
  const outgoing = buildOperationRequest(context, request)
  return request.interaction.cancels
    ? endJob(context, request, outgoing)
    : sealJob(context, request, await passThrough(context, request, outgoing))
}

/** The operations that return resources of the types in their parameters: a GraphQL query, a list of types. */
const READ_BY_NAME: ReadonlySet<string> = new Set(['$graphql', '$export'])

/** An excluded type that the parameters or the query name. */
export function findReadType({ interaction, body }: FhirRequest<Operation>): string | undefined {
  if (!READ_BY_NAME.has(interaction.name)) return undefined
  const text = JSON.stringify([interaction.params, body])
  return [...EXCLUDED_TYPES].find(type => text.includes(type))
}

/** Without the body of the response: that of HAPI has no Content-Type, and says no more than the status. */
async function endJob(
  context: GatewayContext,
  request: FhirRequest<Operation>,
  outgoing: UpstreamRequest,
): Promise<FhirResponse | Failure> {
  const response = await context.upstream.ask(outgoing)
  if (isFailure(response)) return response
  return response.status < 300 ? { status: response.status } : toFailure(response, request)
}

const TERMINOLOGY: ReadonlySet<string> = new Set(['CodeSystem', 'ConceptMap', 'Parameters', 'ValueSet'])

/** A terminology operation. A response with anything but definitions and codes is not released. */
async function passTerminology(
  context: GatewayContext,
  request: FhirRequest<Operation>,
): Promise<FhirResponse | Failure> {
  const response = await context.upstream.ask(buildOperationRequest(context, request))
  if (isFailure(response)) return response
  if (response.status !== 200) return toFailure(response, request)
  const resource = parseResource(response)
  if (isFailure(resource)) return resource
  if (!isTerminology(resource)) return failBroken('its terminology service answered with other resources')
  return { status: 200, headers: {}, body: response.text }
}

function isTerminology(value: unknown): boolean {
  if (Array.isArray(value)) return value.every(isTerminology)
  if (!isRecord(value)) return true
  const { resourceType } = value
  if (resourceType !== undefined && !TERMINOLOGY.has(String(resourceType))) return false
  return Object.values(value).every(isTerminology)
}

export function buildOperationRequest(
  context: GatewayContext,
  request: FhirRequest<Operation>,
): UpstreamRequest {
  const { interaction, body, preferences } = request
  // R4 graphql.html: a query is not a resource.
  const format = isResource(body) ? 'application/fhir+json' : 'application/json'
  return {
    method: interaction.cancels ? 'DELETE' : interaction.posted ? 'POST' : 'GET',
    path: buildPath(getPath(interaction), dropFormat(interaction.params), context.urls),
    headers: {
      ...buildHeaders(request),
      accept: 'application/fhir+json, application/json;q=0.9',
      ...(preferences.respondAsync && { prefer: 'respond-async' }),
      ...(body !== undefined && { 'content-type': `${format}; charset=utf-8` }),
    },
    ...(body !== undefined && { body: context.urls.toUpstreamBody(formatExact(body)) }),
  }
}

type OperationHandler = (
  context: GatewayContext,
  request: FhirRequest<Operation>,
) => Promise<FhirResponse | Failure>

/** The operations whose response is checked here, by name and level. */
const OPERATIONS: Readonly<Record<string, OperationHandler>> = {
  'DocumentReference/$docref': findDocumentReferences,
  'Patient/id/$summary': createDocumentHandler('Patient'),
  'Composition/id/$document': createDocumentHandler('Composition'),
}

/** Performs an operation that the upstream has and the API does not; undefined where it is not offered. */
export function performOperation(
  context: GatewayContext,
  request: FhirRequest<Operation>,
): Promise<FhirResponse | Failure> | undefined {
  return findHandler(context, request)?.(context, request)
}

function findHandler(
  { operations }: GatewayContext,
  { interaction }: FhirRequest<Operation>,
): OperationHandler | undefined {
  const { name, type, id } = interaction
  const level = id === undefined ? '' : '/id'
  const own = OPERATIONS[`${type}${level}/${name}`] ?? (type && OPERATIONS[`type${level}/${name}`])
  if (own) return own
  const kind = findOperation(operations, interaction)?.needs.kind
  if (kind === 'whole-type') return passTerminology
  return kind === 'all-data' ? passOperation : undefined
}

/** `Patient/[id]/$summary` and `Composition/[id]/$document`: a document whose resources are checked by their content. */
function createDocumentHandler(type: 'Patient' | 'Composition') {
  return async (
    context: GatewayContext,
    received: FhirRequest<Operation>,
  ): Promise<FhirResponse | Failure> => {
    const request = addPostedParams(received)
    if (isFailure(request)) return request
    const { id = '', name } = request.interaction
    const found = await findResource(createLookup(context, request), request, { permission: 'r', type, id })
    if (isFailure(found)) return found
    if (found.deleted) return failFor('gone', { type, id })
    const params = dropFormat(request.interaction.params)
    // `persist=true` would store the document.
    const unknown = params.find(([it, value]) => it !== 'profile' && !(it === 'persist' && value === 'false'))
    if (unknown) return failUnsupported(unknown[0], name)
    return fetchDocument(context, request, buildPath(getPath(request.interaction), params, context.urls))
  }
}

async function fetchDocument(
  context: GatewayContext,
  request: FhirRequest<Operation>,
  path: string,
): Promise<FhirResponse | Failure> {
  const answer = await context.upstream.ask(buildGet(request, path))
  if (isFailure(answer)) return answer
  if (answer.status !== 200) return toFailure(answer, request)
  const read = parseBundle(answer)
  if (isFailure(read)) return read
  const { bundle, entries } = read
  if (!entries) return failBroken('its document is not a Bundle')
  const resources = entries.map(parseEntry)
  const broken = resources.find(isFailure)
  if (broken) return broken
  const check = await createContentCheck(context, request, resources.filter(isResource))
  if (isFailure(check)) return check
  const isWhole = readsWholeRecord(request)
  const showsComposition = request.interaction.name !== '$summary' || isWhole
  const visible = entries.flatMap(({ fullUrl, text }, at) => {
    const resource = resources[at]
    if (!isResource(resource) || !VISIBLE.isMatch(resource, check)) return []
    const { resourceType: type } = resource
    if (type === 'Composition' && !showsComposition) return []
    return [{ type, fullUrl: buildFullUrl(context, fullUrl, resource), text, resource }]
  })
  const shown = isWhole ? visible : dropUnreferenced(context, visible)
  const isDocument = shown[0]?.type === 'Composition'
  const documentEntries = shown.map(({ fullUrl, text }) => entryJson({ fullUrl, resource: text }))
  return { status: 200, body: bundleJson({ ...buildParts(bundle, isDocument), entries: documentEntries }) }
}

interface DocumentEntry {
  readonly type: string
  readonly fullUrl: string
  readonly resource: Resource
}

/** Leaves out resources that belong to no patient and to which only hidden resources refer: they would reveal the hidden ones. */
function dropUnreferenced<Entry extends DocumentEntry>(
  { baseUrl }: GatewayContext,
  entries: readonly Entry[],
): readonly Entry[] {
  const own = entries.filter(({ type }) => hasCompartment(type))
  const named = new Set(
    own.flatMap(({ resource }) => [...listReferenceTexts(resource), ...listReferences(resource, baseUrl)]),
  )
  return entries.filter(
    ({ type, fullUrl, resource: { id } }) =>
      hasCompartment(type) || named.has(fullUrl) || named.has(`${type}/${id}`),
  )
}

/** A document has an identifier and a time (R4 bundle.html, bdl-9 and bdl-10), and begins with its Composition (bdl-11). */
function buildParts({ identifier, timestamp }: Resource, isDocument: boolean) {
  return {
    type: isDocument ? ('document' as const) : ('collection' as const),
    ...(isDocument && isRecord(identifier) && { identifier }),
    ...(isDocument && typeof timestamp === 'string' && { timestamp }),
  }
}

/** References within a document may be to URLs that only the document has (`urn:uuid:…`). */
function buildFullUrl({ baseUrl }: GatewayContext, fullUrl: unknown, { resourceType, id }: Resource): string {
  const isOwn =
    typeof fullUrl === 'string' && (fullUrl.startsWith('urn:') || fullUrl.startsWith(`${baseUrl}/`))
  return isOwn ? fullUrl : `${baseUrl}/${resourceType}/${id}`
}

/** Whether a caller may read all types of a patient's record without a filter. The Composition of `$summary` describes them all. */
function readsWholeRecord({ access }: FhirRequest): boolean {
  return resourceTypes.every(type => {
    const filter = listCompartmentParameters(type).length === 0 ? 'everything' : access.filterFor(type, 'r')
    return (
      filter === 'everything' || filter.some(constraint => !constraint.query && constraint.id === undefined)
    )
  })
}

// US Core DocumentReference-docref.
const DOCREF: ReadonlySet<string> = new Set(['patient', 'start', 'end', 'type', 'on-demand', 'profile'])

/** `DocumentReference/$docref`, for a patient whose documents the caller may search. */
async function findDocumentReferences(
  context: GatewayContext,
  received: FhirRequest<Operation>,
): Promise<FhirResponse | Failure> {
  const posted = addPostedParams(received)
  if (isFailure(posted)) return posted
  const path = getPath(posted.interaction)
  const resumed = resumePage(context, posted, path)
  if (isFailure(resumed)) return resumed
  const { request, cursor } = resumed
  const sent = dropFormat(request.interaction.params)
  const unknown = sent.find(([name]) => !DOCREF.has(name))
  if (unknown) return failUnsupported(unknown[0], '$docref')
  const patient = findPatient(sent, context.baseUrl)
  if (patient === undefined) return failFor('patient-malformed')
  if (!(await mayHaveDocuments(context, request, patient))) return failFor('outside-access')
  const page = await fetchRecord(context, request, parseCursor(cursor), { count: PAGE_SIZE, sent })
  return isFailure(page) ? page : respondWithPage(context, request, path, page)
}

const PAGE_SIZE = 50

function findPatient(params: Params, baseUrl: string): string | undefined {
  const [value, another] = params.filter(([name]) => name === 'patient').map(([, text]) => text)
  if (value === undefined || another !== undefined) return undefined
  const reference = parseReference(value, baseUrl)
  return reference?.type === 'Patient' ? reference.id : isId(value) ? value : undefined
}

async function mayHaveDocuments(
  context: GatewayContext,
  request: FhirRequest,
  patient: string,
): Promise<boolean> {
  const filter = request.access.filterFor('DocumentReference', 's')
  const expanded = await createPanelExpansion(context, request).expand('DocumentReference', filter, [patient])
  return (
    expanded === 'everything' ||
    expanded.some(
      constraint => constraint.patient === patient || (constraint.patient === undefined && !constraint.panel),
    )
  )
}

function failUnsupported(parameter: string, name: string): Failure {
  return failFor('operation-parameter-unknown', { parameter, operation: name })
}
