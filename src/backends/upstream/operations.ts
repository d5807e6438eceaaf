import { fail, findOperation, formatExact, isRecord } from '../../fhir/index.ts'
import {
  type Failure,
  type FhirRequest,
  type FhirResponse,
  getPath,
  isFailure,
  type Operation,
} from '../../fhir-api/index.ts'
import type { GatewayContext } from './context.ts'
import { createDocumentHandler, findDocumentReferences } from './documents.ts'
import { buildHeaders, buildQuery } from './http/build-request.ts'
import type { UpstreamRequest } from './http/exchange.ts'
import { toFailure } from './http/failure.ts'
import { parseResource } from './http/parse-resource.ts'
import { passThrough } from './http/pass-through.ts'

/** An operation that the site allows (`smart.fhir.upstream-operations`), for a caller who may see everything. */
function passOperation(
  context: GatewayContext,
  request: FhirRequest<Operation>,
): Promise<FhirResponse | Failure> {
  return passThrough(context, request, buildOperationRequest(context, request))
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
  if (!isTerminology(resource))
    return fail({ problem: 'upstream-broken', why: 'its terminology service answered with other resources' })
  return { status: 200, headers: {}, body: response.text }
}

function isTerminology(value: unknown): boolean {
  if (Array.isArray(value)) return value.every(isTerminology)
  if (!isRecord(value)) return true
  const { resourceType } = value
  if (resourceType !== undefined && !TERMINOLOGY.has(String(resourceType))) return false
  return Object.values(value).every(isTerminology)
}

function buildOperationRequest(context: GatewayContext, request: FhirRequest<Operation>): UpstreamRequest {
  const { interaction, body, preferences } = request
  const query = buildQuery(
    interaction.params.filter(([name]) => name !== '_format' && name !== '_pretty'),
    context.urls,
  )
  const path = getPath(interaction)
  return {
    method: interaction.posted ? 'POST' : 'GET',
    path: query === '' ? path : `${path}?${query}`,
    headers: {
      ...buildHeaders(request),
      ...(preferences.respondAsync && { prefer: 'respond-async' }),
      ...(body !== undefined && { 'content-type': 'application/fhir+json; charset=utf-8' }),
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
