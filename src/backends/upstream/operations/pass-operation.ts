import { fail, formatExact, isProblem, isRecord } from '../../../fhir/index.ts'
import type { FhirResponse, Operation } from '../../../fhir-api/index.ts'
import { getPath } from '../../../fhir-api/index.ts'
import type { Call, Context } from '../call.ts'
import type { Problem } from '../problem.ts'
import { toFailure } from '../upstream/declined.ts'
import type { UpstreamRequest } from '../upstream/exchange.ts'
import { passThrough } from '../upstream/pass-through.ts'
import { buildHeaders, buildQuery } from '../upstream/request-of.ts'
import { parseResource } from '../upstream/resource-in.ts'

/** An operation that the site lets pass (`smart.fhir.upstream-operations`), for a caller who may see everything. */
export function passOperation(context: Context, call: Call<Operation>): Promise<FhirResponse | Problem> {
  return passThrough(context, call, requestFor(context, call))
}

const TERMINOLOGY: ReadonlySet<string> = new Set(['CodeSystem', 'ConceptMap', 'Parameters', 'ValueSet'])

/** A terminology operation. Its response holds definitions and codes; one that holds anything else is not released. */
export async function passTerminology(
  context: Context,
  call: Call<Operation>,
): Promise<FhirResponse | Problem> {
  const answer = await context.upstream.ask(requestFor(context, call))
  if (isProblem(answer)) return answer
  if (answer.status !== 200) return toFailure(answer, call.access)
  const resource = parseResource(answer)
  if (isProblem(resource)) return resource
  if (!holdsOnlyTerminology(resource))
    return fail({ problem: 'upstream-broken', why: 'its terminology service answered with other resources' })
  return { status: 200, headers: {}, body: answer.text }
}

function holdsOnlyTerminology(value: unknown): boolean {
  if (Array.isArray(value)) return value.every(holdsOnlyTerminology)
  if (!isRecord(value)) return true
  const { resourceType } = value
  if (resourceType !== undefined && !TERMINOLOGY.has(String(resourceType))) return false
  return Object.values(value).every(holdsOnlyTerminology)
}

function requestFor(context: Context, call: Call<Operation>): UpstreamRequest {
  const { interaction, body, preferences } = call
  const query = buildQuery(
    interaction.params.filter(([name]) => name !== '_format' && name !== '_pretty'),
    context.addresses,
  )
  const path = getPath(interaction)
  return {
    method: interaction.posted ? 'POST' : 'GET',
    path: query === '' ? path : `${path}?${query}`,
    headers: {
      ...buildHeaders(call),
      ...(preferences.respondAsync && { prefer: 'respond-async' }),
      ...(body !== undefined && { 'content-type': 'application/fhir+json; charset=utf-8' }),
    },
    ...(body !== undefined && { body: context.addresses.inward(formatExact(body)) }),
  }
}
